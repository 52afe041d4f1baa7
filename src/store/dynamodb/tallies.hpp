#pragma once

#include "store/dynamodb/client.hpp"
#include "store/dynamodb/table.hpp"
#include "store/usage_view.hpp"

#include <array>
#include <map>
#include <string>

/// Counters beside the records: how many there are in each state, and what scopes use of their
/// quotas. A process adds to them after it has written the records, many changes in one write, so a
/// process that is killed in between leaves them off by what it had not added yet (at most
/// limits::dynamodb_counting_pause's worth, and the writes under way). Loop's thread only.
namespace idem::dynamodb {

class Tallies {
 public:
  explicit Tallies(Client& client) : client_(client) {}

  /// A record went from `before` to `after`; none: it was not there, or is gone.
  void moved(const std::optional<State>& before, const std::optional<State>& after);
  void used(const std::string& scope, const UsageChange& change);

  Task<std::expected<std::array<std::int64_t, 7>, NoReply>> counts();
  Task<std::expected<UsageChange, NoReply>> usage(std::string scope);

  /// Returns once all changes so far are added, or one of them could not be.
  Task<void> flush();

 private:
  using Changes = std::map<std::string, std::int64_t, std::less<>>;

  void add(const Key& key, std::string_view name, std::int64_t change, Millis pause);
  Task<void> write_out(Key key, Millis pause);
  Task<void> write_once(Key key);

  Client& client_;
  std::map<Key, Changes> pending_;
  std::map<Key, Changes> writing_;
  bool is_flushing_ = false;
};

/// The usage of scopes as one process sees it, read from the counters.
class UsageLedger {
 public:
  UsageLedger(Client& client, Tallies& tallies) : client_(client), tallies_(tallies) {}

  /// Reads the scope's counters if the last reading is too old: the nearer to the quota, the
  /// sooner. Of several callers about an unread scope one reads, and all wait.
  Task<std::optional<StoreError>> look_at(std::string scope, Quota quota);
  Usage of(const std::string& scope) const { return view_.of(scope); }
  void begin(const std::string& scope, const UsageChange& change) { view_.begin(scope, change); }
  void end(const std::string& scope, const UsageChange& change, bool is_written);

 private:
  Client& client_;
  Tallies& tallies_;
  UsageView view_;
};

}  // namespace idem::dynamodb
