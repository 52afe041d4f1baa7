#include "store/log/ids/merge.hpp"

#include <algorithm>
#include <numeric>

namespace idem::segments {
namespace {

constexpr std::size_t merged_at_once = 4;
constexpr std::size_t pages_read_at_once = 256;

/// How often a run of this size was merged.
std::size_t tier_of(std::uint64_t entries, std::uint64_t small) noexcept {
  std::size_t tier = 0;
  for (std::uint64_t most = small; most < entries; most *= merged_at_once) ++tier;
  return tier;
}

std::uint64_t entries_of(const Merge::Runs& runs) {
  return std::accumulate(runs.begin(), runs.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& run) { return sum + run->entries(); });
}

}  // namespace

std::optional<MergePlan> plan_merge(std::span<const RunSize> sizes, std::uint64_t small,
                                    std::uint64_t live) {
  // A run under a larger one counts as one of that size: it became small by records that are gone.
  std::size_t tier = 0;
  MergePlan group;
  std::uint64_t entries = 0;
  bool are_free = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    entries += sizes[i].entries;
    are_free = are_free && sizes[i].is_free;
    const std::size_t own = std::max(tier, tier_of(sizes[i].entries, small));
    if (own != tier || !sizes[i].is_free) {
      if (group.count >= merged_at_once) return group;
      tier = own;
      group = {sizes[i].is_free ? i : i + 1, 0};
    }
    if (sizes[i].is_free) ++group.count;
  }
  if (group.count >= merged_at_once) return group;
  const bool are_stale = entries > live + live / 2 + merged_at_once * small;
  if (are_free && sizes.size() > 1 && are_stale) return MergePlan{0, sizes.size()};
  return std::nullopt;
}

Merge::Merge(Runs runs, bool drops_gone, std::string path, std::uint32_t number)
    : runs_(std::move(runs)),
      drops_gone_(drops_gone),
      number_(number),
      out_(std::move(path), number, entries_of(runs_)) {
  for (const auto& run : runs_) from_.emplace_back(run, RecordId{}, pages_read_at_once, false);
}

std::vector<std::uint32_t> Merge::damaged() const {
  std::vector<std::uint32_t> numbers;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (from_[i].has_damage()) numbers.push_back(runs_[i]->number());
  }
  return numbers;
}

Merge::State Merge::step(std::size_t entries) {
  const auto is_damaged = [](const auto& cursor) { return cursor.has_damage(); };
  for (std::size_t i = 0; i < entries; ++i) {
    const SortedRun::Cursor* const least = least_of(from_);
    if (std::ranges::any_of(from_, is_damaged)) return State::failed;
    if (least == nullptr) return out_.finish() == 0 ? State::done : State::failed;
    const IdEntry entry = least->entry();
    if (!entry.is_gone() || !drops_gone_) out_.append(entry);
    pass(from_, entry.id);
  }
  return out_.has_failed() ? State::failed : State::goes_on;
}

}  // namespace idem::segments
