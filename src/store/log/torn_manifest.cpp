#include "store/log/torn_manifest.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "store/folder.hpp"
#include "store/log/files.hpp"

#include <boost/crc.hpp>

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace idem::segments {
namespace {

constexpr std::string_view copy_name = "idem-look-";

constexpr std::size_t manifest_block_bytes = 32'768;
constexpr std::size_t fragment_head_bytes = 7;
enum FragmentKind : std::uint8_t { full = 1, first = 2, middle = 3, last = 4 };

/// CRC-32C, changed as LevelDB does it, so that a checksum of checksums is none of them.
std::uint32_t masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const auto value = static_cast<std::uint32_t>(crc.checksum());
  return ((value >> 15U) | (value << 17U)) + 0xa282ead8U;
}

struct WholeRecords {
  std::size_t end = 0;        ///< Of the last one before which all are whole.
  bool begins_again = false;  ///< There follows what the first one has.
};

WholeRecords whole_records_of(std::string_view bytes) {
  WholeRecords whole;
  std::string_view start;
  bool is_within = false;
  for (std::size_t at = 0; at + fragment_head_bytes <= bytes.size();) {
    const std::size_t left = manifest_block_bytes - at % manifest_block_bytes;
    if (left < fragment_head_bytes) {
      at += left;
      continue;
    }
    ByteReader in(bytes.substr(at));
    const auto crc = in.number<std::uint32_t>();
    const std::size_t size = in.number<std::uint16_t>();
    const auto part = in.number<std::uint8_t>();
    const bool begins = part == full || part == first;
    if (begins == is_within || part < full || part > last) break;
    if (fragment_head_bytes + size > std::min(left, bytes.size() - at)) break;
    if (crc != masked_crc(bytes.substr(at + fragment_head_bytes - 1, 1 + size))) break;
    const auto fragment = bytes.substr(at, fragment_head_bytes + size);
    if (start.empty()) {
      start = fragment;
    } else if (fragment == start) {
      whole.begins_again = true;
      break;
    }
    at += fragment.size();
    is_within = part == first || part == middle;
    if (!is_within) whole.end = at;
  }
  return whole;
}

struct FoundList {
  std::string path;
  std::string bytes;
  WholeRecords whole;
};

std::optional<FoundList> list_of(const std::string& index) {
  const auto name = whole_file(index + "/CURRENT");
  if (!name || !name->starts_with("MANIFEST-") || !name->ends_with('\n')) return std::nullopt;
  const std::string path = index + "/" + name->substr(0, name->size() - 1);
  auto bytes = whole_file(path);
  if (!bytes) return std::nullopt;
  const WholeRecords whole = whole_records_of(*bytes);
  return FoundList{path, std::move(*bytes), whole};
}

/// Likewise; more follows after its whole records.
std::optional<FoundList> torn_list_of(const std::string& index) {
  auto list = list_of(index);
  if (list && (list->whole.end == 0 || list->whole.end == list->bytes.size())) list.reset();
  return list;
}

/// A start may have no other folder to write to than that of its store.
std::optional<std::string> folder_for_copy(const std::filesystem::path& store) {
  std::error_code code;
  for (const auto& above : {std::filesystem::temp_directory_path(code), store}) {
    if (above.empty()) continue;  // There is no folder for temporary files.
    std::string name = (above / copy_name).string() + std::string(6, 'X');  // As mkdtemp wants it.
    if (::mkdtemp(name.data()) != nullptr) return name;
  }
  return std::nullopt;
}

}  // namespace

bool has_a_list_twice(const std::string& index) {
  const auto list = list_of(index);
  return list && list->whole.begins_again;
}

bool end_torn_manifest(const std::string& index) {
  const auto list = torn_list_of(index);
  if (!list) return false;
  return write_whole(index, list->path, std::string_view(list->bytes).substr(0, list->whole.end));
}

std::optional<MendedIndex> MendedIndex::of(const std::string& index) {
  namespace fs = std::filesystem;
  const auto list = torn_list_of(index);
  if (!list) return std::nullopt;
  const auto name = folder_for_copy(fs::path(index).parent_path());
  if (!name) return std::nullopt;
  MendedIndex mended(*name);
  std::error_code code;
  const fs::path folder = *name;
  const fs::path from = fs::absolute(index, code);
  const std::string list_name = fs::path(list->path).filename();
  for (const std::string& file : names_in(index, code)) {
    if (!code && file != list_name) fs::create_symlink(from / file, folder / file, code);
  }
  const std::string path = folder / list_name;
  const auto cut = std::string_view(list->bytes).substr(0, list->whole.end);
  if (code || !write_whole(*name, path, cut)) return std::nullopt;
  return mended;
}

MendedIndex::~MendedIndex() {
  std::error_code code;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, code);
}

void remove_mended_copies(const std::string& path) {
  std::error_code code;
  for (const std::string& name : names_in(path, code)) {
    std::error_code unused;
    if (name.starts_with(copy_name)) std::filesystem::remove_all(path + "/" + name, unused);
  }
}

}  // namespace idem::segments
