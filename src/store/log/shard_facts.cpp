#include "store/log/shard_facts.hpp"

#include "store/log/index_failure.hpp"
#include "store/log/keys.hpp"

#include <algorithm>

namespace idem::segments {
namespace {

bool is_without_records(Database& db, const RunningSection& running) {
  bool is_empty = true;
  running.visit([&](const embedded::RunningCells::Found&) { is_empty = false; });
  const auto some = db.ids().slice(std::nullopt, 1);
  is_empty = is_empty && some.entries.empty() && !some.has_damage;
  return is_empty && has_no_lines(db);
}

}  // namespace

bool has_no_lines(Database& db) {
  for (const Family family : {Family::evidence, Family::journals}) {
    auto at = db.iterate(family);
    at.to_first();
    if (at.is_on_key() || !db.is_sound(at, family)) return false;
  }
  return true;
}

std::expected<ShardFacts, std::string> read_facts(Database& db, const RunningSection& running) {
  ShardFacts facts;
  Meta meta(db);
  std::string damage;
  const auto note = [&](auto value) {
    if (value) return std::move(*value);
    if (damage.empty()) damage = value.error();
    return std::decay_t<decltype(*value)>();
  };
  facts.identity = note(meta.identity());
  facts.noted_fence = note(meta.number(meta_fences)).value_or(0);
  facts.was_open = note(meta.number(meta_open)).value_or(0) != 0;
  facts.mark = note(meta.clock_mark());
  facts.number = note(meta.number(meta_shard));
  facts.layout = note(read_layout(meta));
  facts.start = note(read_start_mark(meta));
  facts.copied_at = note(meta.number(meta_copied_at));
  facts.counts = note(read_counts(db));
  facts.is_empty = is_without_records(db, running);
  if (damage.empty() && !facts.identity && !facts.is_empty) damage = "its identity is missing";
  if (damage.empty()) return facts;
  return std::unexpected(damaged(db.path(), damage));
}

std::string why_files_lack(Database& db) {
  const auto files = db.files_of_versions();
  auto at = db.iterate(Family::segments);
  for (at.to_first(); at.is_on_key(); at.next()) {
    const auto file = static_cast<std::uint32_t>(ordered_at(at.key(), 0));
    const bool is_needed = ordered_at(at.value(), 0) > 0;
    if (!is_needed || std::ranges::find(files, file) != files.end()) continue;
    return damaged(db.path(),
                   version_path(db.path() + "/records", file) + " of its records is missing");
  }
  return {};
}

std::string why_not_beside(const ShardFacts& first, std::uint32_t shard, const ShardFacts& other,
                           const std::string& store) {
  const bool is_its = other.number == shard && other.identity && first.identity &&
                      other.identity->store_id == first.identity->store_id;
  if (!is_its) return folder_of_shard(store, shard) + ": " + has_other_shard(shard);
  if (other.start.fits(first.start) && other.copied_at == first.copied_at) return {};
  return store + ": " + is_of_another_start(shard);
}

std::string why_not_a_leftover(const ShardFacts& found, std::uint32_t shard,
                               const std::string& store) {
  return found.is_empty ? std::string() : store + ": " + has_unknown_shard(shard);
}

}  // namespace idem::segments
