#pragma once

#include "core/transitions/snapshot_table.hpp"
#include "store/attempts.hpp"
#include "store/redis/identity_steps.hpp"
#include "store/redis/retrying_client.hpp"
#include "store/redis/usage_ledger.hpp"

#include <functional>

/// The protocol's steps, each over one record: reads the record, makes the step here, and writes it
/// on the condition that the record did not change meanwhile; otherwise makes the step anew over
/// the current record. Loop's thread only.
namespace idem::redis {

/// The record of a call, and the parts of it that its step needs.
struct Subject {
  RecordId id;
  std::vector<RecordId> also{};  ///< Other names that the record may have.
  /// The generation by which the caller names records. None: it does not matter.
  std::optional<std::uint64_t> generation{};
  bool needs_answer = false;
  bool needs_request = false;
  bool needs_evidence = false;
  bool is_new_work = false;  ///< Most often there is no record.
  /// For a reserve with a quota.
  std::string scope{};
  std::optional<Quota> quota{};
};

class Steps {
 public:
  /// `clock`: a test's, in place of the servers'; or empty.
  Steps(RetryingClient& client, const Names& names, Versions& versions, IdentitySteps& identity,
        std::function<StoreTime()> clock);

  /// Makes the step of `call`, which must stay unchanged and outlive it.
  Task<StoreResult> make(const StoreCall& call, Subject subject);

  /// The record as Find shows it.
  Task<std::expected<std::optional<Record>, StoreError>> look_at(RecordId id);

  Task<std::expected<StoreTime, StoreError>> now_at(unsigned slot);

  /// `why`: why the store admits no new work now; empty: it admits new work.
  void refuse_new_work(std::string why) { why_no_new_work_ = std::move(why); }
  std::uint64_t leases_ended() const noexcept { return leases_ended_; }

 private:
  /// A record as it was read.
  struct Seen {
    RecordId id;
    std::string version;  ///< Empty: there is no record.
    AnswerMark mark = 0;
  };
  struct Try {
    SnapshotTable table;
    std::vector<Seen> seen;
    bool is_read = false;      ///< False: the step is made over an assumed record.
    bool is_in_doubt = false;  ///< A write may have been done; no later read has settled it.
    Fence last_fence = 0;
    static constexpr std::string_view others_write = "other writers keep changing this record";
    std::string_view why_again = others_write;  ///< Why the last write or look was in vain.

    Seen& seen_of(const RecordId& id);
    /// The error of the call: in doubt if one of its writes is.
    std::unexpected<StoreError> failed(StoreError error) const;
  };
  /// After a reply other than "done".
  enum class Next : std::uint8_t { make_again, look_again, written };
  using Outcome = std::expected<Next, StoreError>;

  /// Assumes the record if it is probably known without reading it: then make_again.
  Next assume(Try& tried, const Subject& subject) const;
  Task<Outcome> look(Try& tried, const Subject& subject);
  /// The step over the records of `tried`; its write is in the table.
  StoreResult step(Try& tried, const StoreCall& call, const Subject& subject, StoreTime now);
  /// Writes the step, and counts its usage and the lease that it ended. An error for new work while
  /// it is refused.
  Task<Outcome> commit(Try& tried, const StoreCall& call, const Subject& subject,
                       const RecordWrite& written, StoreTime now);
  Task<Outcome> write(Try& tried, const StoreCall& call, const Subject& subject,
                      const RecordWrite& write, StoreTime now);
  /// Puts a record that was read into the table. `reply`: at 2 the record, then its answer and its
  /// request.
  void put_read(Try& tried, const Subject& subject, const RecordId& id, const Reply& reply) const;
  std::string text_of(const Subject& subject) const;
  /// The error for lost records. `what`: as commit.lua reports it.
  StoreError lost(const RecordId& id, std::string_view what) const;
  Task<Outcome> on_other_generation(const RecordId& id, const Reply& has);
  Task<void> repair(std::size_t bucket);
  void keep(const RecordWrite& write, const Version& version);
  /// For a reserve that makes a new record: an expired record under another of its names.
  static std::optional<RecordId> found_under_other_name(const Try& tried, const Subject& subject,
                                                        const RecordWrite& write);
  void update_clock(unsigned slot, const Reply& reply);
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
