#pragma once

#include "store/redis/attempts.hpp"
#include "store/redis/identity_steps.hpp"
#include "store/redis/retrying_client.hpp"
#include "store/redis/usage_ledger.hpp"
#include "store/snapshot_table.hpp"

#include <functional>

/// The protocol's steps, each over one record: what it is about is read, the step is made here, and
/// is written on the condition that nobody wrote that record meanwhile; else it is made anew over
/// what lies there now. Loop's thread only.
namespace idem::redis {

/// What a call is about, and what of that its step looks at.
struct Subject {
  RecordId id;
  std::vector<RecordId> also{};  ///< Where the record may lie instead.
  /// That the asker names records by. None: it does not matter.
  std::optional<std::uint64_t> generation{};
  bool needs_answer = false;
  bool needs_request = false;
  bool needs_evidence = false;
  bool is_new_work = false;  ///< Nothing lies there, most often.
  /// Of a reserve with a quota.
  std::string scope{};
  std::optional<Quota> quota{};
};

class Steps {
 public:
  /// `clock`: a test's, in place of the servers'; or empty.
  Steps(RetryingClient& asking, const Names& names, Versions& versions, IdentitySteps& identity,
        std::function<StoreTime()> clock);

  /// `call` keeps what it says, and outlives the step.
  Task<StoreResult> make(const StoreCall& call, Subject subject);

  /// Find's view.
  Task<std::expected<std::optional<Record>, StoreError>> look_at(RecordId id);

  Task<std::expected<StoreTime, StoreError>> now_at(unsigned slot);

  /// Why nothing new may be let in now; empty: it may.
  void refuse_new_work(std::string why) { why_no_new_work_ = std::move(why); }
  std::uint64_t leases_ended() const noexcept { return leases_ended_; }

 private:
  /// What was read of one record.
  struct Seen {
    RecordId id;
    std::string version;  ///< Empty: there is none.
    AnswerMark mark = 0;
  };
  struct Try {
    SnapshotTable table;
    std::vector<Seen> seen;
    bool is_read = false;      ///< False: the step is made over what is assumed.
    bool is_in_doubt = false;  ///< A write may have been done, and nobody has heard since.
    Fence last_fence = 0;

    Seen& seen_of(const RecordId& id);
  };
  /// After a reply other than "done".
  enum class Next : std::uint8_t { make_again, look_again, written };
  using Outcome = std::expected<Next, StoreError>;

  void assume(Try& tried, const Subject& subject) const;
  Task<Outcome> look(Try& tried, const Subject& subject);
  Task<Outcome> write(Try& tried, const StoreCall& call, const Subject& subject,
                      const RecordWrite& write, StoreTime now);
  /// `told`: at 2 the record, then its answer and its request.
  void take(Try& tried, const Subject& subject, const RecordId& id, const Reply& told) const;
  std::string text_of(const Subject& subject) const;
  /// What the server has forgotten, as commit.lua says it.
  StoreError lost(const RecordId& id, std::string_view what) const;
  Task<Outcome> on_other_generation(const RecordId& id, const Reply& has);
  Task<void> repair(std::size_t bucket);
  void keep(const RecordWrite& write, const Version& version);
  /// Of a reserve that makes a record anew, one that lies under another of its names: over.
  static std::optional<RecordId> found_under_other_name(const Try& tried, const Subject& subject,
                                                        const RecordWrite& write);
  Connection* connection_of(unsigned slot);
  void heard(unsigned slot, const Reply& reply);
  Fence last_fence_before(const Try& tried, StoreTime now) const;

  RetryingClient& client_;
  const Names& names_;
  Versions& versions_;
  IdentitySteps& identity_;
  std::function<StoreTime()> clock_;
  Attempts attempts_;
  UsageLedger usage_{client_, names_};
  Fence last_fence_ = 0;
  std::uint64_t leases_ended_ = 0;
  bool is_repairing_ = false;
  std::string why_no_new_work_;
};

}  // namespace idem::redis
