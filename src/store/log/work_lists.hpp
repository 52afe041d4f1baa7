#pragma once

#include "store/log/database.hpp"

#include <functional>
#include <set>
#include <vector>

namespace idem::segments {

/// The records that a client, a worker or an operator comes back to (pending, failed_retryable,
/// unknown), by state; the pending ones also by the moments at which they may be claimed and
/// expire. Few, beside the completed ones. And which damaged records the lifecycle leaves alone.
class WorkLists {
 public:
  explicit WorkLists(Database& db);

  static bool has_list(State state) noexcept;
  /// The keys of the state's list begin so; the record's id follows.
  static std::string prefix_of(State state);

  /// Whether each list that the record belongs on has it.
  static bool have(Database& db, const Record& record);

  /// Of a new version.
  void add(const Record& record);
  /// Of the version before. `record` null: it cannot be read; what names it then stays, and is
  /// found to lead nowhere.
  void drop(const RecordId& id, State state, const Record* record);

  /// Pending ones past their expiry, the longest due first.
  std::vector<RecordId> due(StoreTime now, std::size_t limit);
  /// The first one that `may_be_claimed`, of those that have been due the longest.
  std::optional<RecordId> first_to_claim(
      StoreTime now, const std::function<bool(const RecordId&)>& may_be_claimed);

  void hide_from_lifecycle(const RecordId& id);
  void hide_from_claims(const RecordId& id);
  bool is_hidden_from_lifecycle(const RecordId& id) const { return undue_.contains(id); }

 private:
  void show_again(std::set<RecordId>& hidden, char kind, const RecordId& id);

  Database& db_;
  std::set<RecordId> undue_;
  std::set<RecordId> unclaimed_;
  std::string first_claim_;  ///< No claimable record has a smaller key.
};

}  // namespace idem::segments
