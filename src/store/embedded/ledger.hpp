#pragma once

#include "core/transitions/store_steps.hpp"
#include "store/embedded/in_common.hpp"
#include "store/embedded/medium.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace idem::embedded {

/// An open store's parts, as its kind read them.
struct LedgerParts {
  /// What the last process left.
  enum class Found : std::uint8_t {
    closed,
    cut_off,   ///< It did not close the store. It is dead, as the lock was free.
    restored,  ///< A backup that was restored: attempts may have run that it does not know.
  };

  Identity identity{};
  Naming naming{};
  StoreClock clock;
  std::unique_ptr<Medium> medium;
  std::unique_ptr<RecordTable> table;  ///< On the medium.
  Fence highest_fence = 0;             ///< No fence above it was ever granted.
  Fence noted_fence = 0;               ///< What the medium has for that; an old one is mended.
  Found found = Found::closed;
  std::shared_ptr<InCommon>
      in_common{};  ///< With the other shards of the store; null: it has none.
};

/// A store that one process owns: its table, its clock and its fences, and the medium on which they
/// are. Used by one thread.
class Ledger {
 public:
  /// Ends the attempts that cannot be running any more; the first sweep reports them.
  explicit Ledger(LedgerParts parts);

  void begin();
  StoreResult step(StoreCall& call);
  /// As RecordTable's; between begin() and commit().
  bool has_upkeep() const { return table_->has_upkeep(); }
  void upkeep(std::size_t bytes) { table_->upkeep(bytes); }
  void run(StoreTask& task);
  /// As Medium's, of a task or a slice of a listing.
  std::optional<StoreError> take_damage() { return medium_->take_damage(); }
  /// Makes the steps durable, together with the fences and the time that they used.
  void commit();
  bool has_written() const { return medium_->has_written(); }

  /// Shows up to a slice of the table; the id to go on after, if there is more.
  std::optional<RecordId> list_slice(const List& verb, std::vector<Record>& found);

  std::string what_is_lost() { return medium_->what_is_lost(); }
  void tidy() { medium_->tidy(); }
  void close();

 private:
  StepContext context() { return {*table_, fences_, tally_, now_, naming_}; }
  void mark_time();

  Naming naming_;
  StoreClock clock_;
  std::unique_ptr<Medium> medium_;
  std::unique_ptr<RecordTable> table_;
  RecordTally tally_{*table_};
  std::shared_ptr<InCommon> in_common_;
  transitions::FenceCounter fences_;
  Fence fence_high_water_;  ///< Noted on the medium.
  StoreTime now_{};
  StoreTime last_mark_{};
  std::vector<LifecycleStep> cut_off_;  ///< Ended at the start, and not reported yet.
};

}  // namespace idem::embedded
