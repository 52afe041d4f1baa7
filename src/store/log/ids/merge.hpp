#pragma once

#include "store/log/ids/sorted_run.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace idem::segments {

/// What a plan has to know of a run.
struct RunSize {
  std::uint64_t entries = 0;
  bool is_free = true;  ///< It is not being merged, and it can be.
};
/// The runs from `first` on, `count` of them.
struct MergePlan {
  std::size_t first = 0;
  std::size_t count = 0;
  bool operator==(const MergePlan&) const = default;
};
/// Which runs to merge next, none: they are few. `sizes`: the newest first. `small`: the entries of
/// a run that was in memory. `live`: the records that there are.
///
/// Runs of about one size are merged once there are four (tiered compaction, as of Bigtable and
/// Cassandra): an entry is written once for each factor of four, and the runs to look into are few.
/// All are merged once half as many entries as there are records count no more.
std::optional<MergePlan> plan_merge(std::span<const RunSize> sizes, std::uint64_t small,
                                    std::uint64_t live);

/// Makes one run out of several that follow each other, step by step. Used by one thread.
class Merge {
 public:
  using Runs = std::vector<std::shared_ptr<const SortedRun>>;

  /// `runs`: the newest first. `drops_gone`: there are no older ones.
  Merge(Runs runs, bool drops_gone, std::string path, std::uint32_t number);

  enum class State : std::uint8_t { goes_on, done, failed };
  /// Reads about so many entries. Once it has failed its file is of no use.
  State step(std::size_t entries);

  const Runs& runs() const noexcept { return runs_; }
  /// Numbers of those in which it met damage.
  std::vector<std::uint32_t> damaged() const;
  std::uint32_t number() const noexcept { return number_; }
  const std::string& path() const noexcept { return out_.path(); }

 private:
  Runs runs_;
  bool drops_gone_;
  std::uint32_t number_;
  SortedRunWriter out_;
  std::vector<SortedRun::Cursor> from_;
};

/// Entries of several sources, the newest first, in the order of their ids; of each id the newest.
/// Null: all are at their end. The source that it is of stays where it is.
template <class Source>
Source* least_of(std::vector<Source>& sources) {
  Source* least = nullptr;
  for (Source& source : sources) {
    if (source.is_at_end()) continue;
    if (least == nullptr || source.entry().id < least->entry().id) least = &source;
  }
  return least;
}
/// Moves all sources that are at this id.
template <class Source>
void pass(std::vector<Source>& sources, const RecordId& id) {
  for (Source& source : sources) {
    if (!source.is_at_end() && source.entry().id == id) source.advance();
  }
}

}  // namespace idem::segments
