#include "store/log/shards.hpp"

#include "core/bytes/byte_cursor.hpp"

#include <idem/fingerprint.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace idem::segments {
namespace {

constexpr std::string_view meta_layout = "layout";
constexpr std::string_view meta_start = "start";

/// Not less than `least`, but where it was less from the beginning.
std::uint64_t share_of(std::uint64_t all, std::uint32_t shards, std::uint64_t least) {
  return std::max(all / shards, std::min(all, least));
}

}  // namespace

std::expected<Layout, std::string> read_layout(Meta& meta) {
  const auto value = meta.read(meta_layout);
  if (!value) return std::unexpected(value.error());
  if (!*value) return Layout{};
  ByteReader in(**value);
  Layout layout;
  layout.shards = in.number<std::uint32_t>();
  layout.folders = in.number<std::uint32_t>();
  layout.is_moving = in.number<std::uint32_t>() != 0;
  const bool is_sound = !in.is_cut_short() && layout.shards > 0 &&
                        layout.shards <= layout.folders && layout.folders <= store_shards_max;
  if (!is_sound) return std::unexpected("the number of its shards is damaged");
  return layout;
}

void write_layout(Meta& meta, const Layout& layout) {
  std::array<char, 3 * sizeof(std::uint32_t)> bytes{};
  ByteWriter out(bytes.data());
  out.number(layout.shards);
  out.number(layout.folders);
  out.number(std::uint32_t{layout.is_moving});
  meta.write(meta_layout, {bytes.data(), bytes.size()});
}

std::uint64_t StartMark::random() {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  random_bytes(bytes);
  std::uint64_t mark = 0;
  std::memcpy(&mark, bytes.data(), sizeof mark);
  return std::max<std::uint64_t>(mark, 1);
}

std::expected<StartMark, std::string> read_start_mark(Meta& meta) {
  const auto value = meta.read(meta_start);
  if (!value) return std::unexpected(value.error());
  if (!*value) return StartMark{};
  ByteReader in(**value);
  StartMark mark;
  mark.present = in.number<std::uint64_t>();
  mark.next = in.number<std::uint64_t>();
  if (in.is_cut_short()) return std::unexpected("the mark of its last start is damaged");
  return mark;
}

void write_start_mark(Meta& meta, const StartMark& mark) {
  std::array<char, 2 * sizeof(std::uint64_t)> bytes{};
  ByteWriter out(bytes.data());
  out.number(mark.present);
  out.number(mark.next);
  meta.write(meta_start, {bytes.data(), bytes.size()});
}

std::string folder_of_shard(const std::string& store, std::uint32_t shard) {
  return shard == 0 ? store : fmt::format("{}/shards/{:02}", store, shard);
}

LogSizes sizes_of_one(LogSizes all, std::uint32_t shards) {
  constexpr std::uint64_t mebibyte = 1UL << 20U;
  all.segment_bytes = share_of(all.segment_bytes, shards, 16 * mebibyte);
  all.cache_bytes = share_of(all.cache_bytes, shards, mebibyte);
  all.buffer_bytes = share_of(all.buffer_bytes, shards, 2 * mebibyte);
  all.open_files = static_cast<std::uint32_t>(share_of(all.open_files, shards, 48));
  return all;
}

StoreFileProgress part_of(const StoreFileProgress& progress, std::uint32_t shard,
                          std::uint32_t shards) {
  if (!progress || shards == 1) return progress;
  return [progress, shard, shards](std::uint64_t done, std::uint64_t all) {
    progress(shard * all + done, shards * all);
  };
}

std::string is_a_shard(std::uint64_t shard) {
  return fmt::format("is shard {} of a store: write the path of the folder above shards/", shard);
}

std::string lacks_shard(std::uint32_t shard) {
  return fmt::format(
      "is damaged: shard {} of its records is missing. Its keys could run again, so it is not "
      "opened: bring back that very folder, or restore a backup of the whole store (idem store "
      "restore)",
      shard);
}

std::string has_other_shard(std::uint32_t shard) {
  return fmt::format(
      "is not shard {} of this store. Keys could run again, so the store is not opened: bring back "
      "that very folder, or restore a backup of the whole store (idem store restore)",
      shard);
}

std::string is_of_another_start(std::uint32_t shard) {
  return fmt::format(
      "shard {} and the rest of the store were not written by the same process: one of them is an "
      "older copy. Keys could run again, so the store is not opened: bring back that very folder, "
      "or "
      "restore a backup of the whole store (idem store restore)",
      shard);
}

std::string has_unknown_shard(std::uint32_t shard) {
  return fmt::format(
      "has records in shards/{:02}, of which the rest of the store knows nothing, perhaps because "
      "it is an older copy. Keys could run again, so the store is not opened: bring back a copy of "
      "the whole store, or move that folder away",
      shard);
}

}  // namespace idem::segments
