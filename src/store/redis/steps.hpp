#pragma once

#include "store/compare_and_set/steps.hpp"
#include "store/redis/identity_steps.hpp"
#include "store/redis/retrying_client.hpp"
#include "store/redis/usage_ledger.hpp"

/// The protocol's steps over the records of a Redis (store/compare_and_set/steps.hpp).
namespace idem::redis {

using compare_and_set::Next;
using compare_and_set::Outcome;
using compare_and_set::Subject;

/// A record as it was read.
struct SeenRecord {
  RecordId id;
  std::string version{};  ///< Empty: there is no record.
  AnswerMark mark = 0;

  bool is_there() const noexcept { return !version.empty(); }
  void assume(const RowVersion& written) { version = bytes_of(written); }
};

class Steps : public compare_and_set::Steps<Steps, SeenRecord> {
 public:
  /// `clock`: a test's, in place of the servers'; or empty.
  Steps(RetryingClient& client, const Names& names, Versions& versions, IdentitySteps& identity,
        std::function<StoreTime()> clock);

  Task<std::expected<StoreTime, StoreError>> now_at(unsigned slot);

  /// `why`: why the store admits no new work now; empty: it admits new work.
  void refuse_new_work(std::string why) { why_no_new_work_ = std::move(why); }

 private:
  friend class compare_and_set::Steps<Steps, SeenRecord>;

  /// The scripts compare the generation of each call.
  static Task<std::optional<StoreError>> admit(const Subject&) { co_return std::nullopt; }
  Task<std::expected<StoreTime, StoreError>> now_for(RecordId id) {
    return now_at(names_.of(id).slot);
  }
  bool have_one_clock(RecordId one, RecordId other) const {
    return names_.of(one).slot == names_.of(other).slot;
  }
  Task<Outcome> look(Tried& tried, const Subject& subject);
  /// An error for new work while it is refused.
  Task<Outcome> prepare(Tried& tried, const Subject& subject, const RecordWrite& written,
                        StoreTime now);
  Task<Outcome> write(Tried& tried, const StoreCall& call, const Subject& subject,
                      const RecordWrite& write, StoreTime now);
  void is_written(const RecordWrite&) const noexcept {}
  /// Puts a record that was read into the table. `reply`: at 2 the record, then its answer and its
  /// request.
  void put_read(Tried& tried, const Subject& subject, const RecordId& id, const Reply& reply) const;
  std::string text_of(const Subject& subject) const;
  /// The error for lost records. `what`: as commit.lua reports it.
  StoreError lost(const RecordId& id, std::string_view what) const;
  Task<Outcome> on_other_generation(const RecordId& id, const Reply& has);
  Task<void> repair(std::size_t bucket);
  void keep(const RecordWrite& write, const Version& version);
  void update_clock(unsigned slot, const Reply& reply);

  RetryingClient& client_;
  const Names& names_;
  Versions& versions_;
  IdentitySteps& identity_;
  UsageLedger usage_{client_, names_};
  bool is_repairing_ = false;
  std::string why_no_new_work_;
};

}  // namespace idem::redis

extern template class idem::compare_and_set::Steps<idem::redis::Steps, idem::redis::SeenRecord>;
