#pragma once

#include "core/transitions/snapshot_table.hpp"
#include "store/attempts.hpp"
#include "store/dynamodb/identity_steps.hpp"
#include "store/dynamodb/record_item.hpp"
#include "store/dynamodb/tallies.hpp"

#include <functional>

/// The protocol's steps, each over one record: reads its item, makes the step here, and writes the
/// item on the condition that its version is the one that was read; otherwise makes the step anew
/// over the item as it is. Loop's thread only.
namespace idem::dynamodb {

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
  /// `clock`: a test's, in place of the service's; or empty.
  Steps(Client& client, RowVersions& versions, IdentitySteps& identity, Tallies& tallies,
        std::function<StoreTime()> clock);

  /// Makes the step of `call`, which must stay unchanged and outlive it.
  Task<StoreResult> make(const StoreCall& call, Subject subject);

  /// The record as Find shows it.
  Task<std::expected<std::optional<Record>, StoreError>> look_at(RecordId id);
  Task<std::expected<std::vector<EvidenceEntry>, StoreError>> evidence_of(RecordId id);

  /// Removes a blank that is over. Its log keeps it.
  Task<void> end_blank(RecordId id);

  /// None: no answer of the service has shown its clock yet.
  std::optional<StoreTime> now() const;
  std::uint64_t leases_ended() const noexcept { return leases_ended_; }

 private:
  struct Seen {
    RecordId id;
    ItemState item{};
  };
  struct Try {
    SnapshotTable table;
    std::vector<Seen> seen;
    bool is_read = false;      ///< False: the step is made over an assumed record.
    bool is_in_doubt = false;  ///< A write may have been done; no later read has settled it.
    Fence last_fence = 0;

    Seen& seen_of(const RecordId& id);
    /// The error of the call: in doubt if one of its writes is.
    std::unexpected<StoreError> failed(StoreError error) const;
  };
  /// After an answer other than "done".
  enum class Next : std::uint8_t { make_again, look_again, written };
  using Outcome = std::expected<Next, StoreError>;
  using Found = std::expected<Next, NoReply>;

  /// Assumes the record if it is probably known without reading it: then make_again.
  Next assume(Try& tried, const Subject& subject) const;
  Task<Outcome> look(Try& tried, const Subject& subject);
  /// Puts an item that was read into the table, with its pieces. look_again: it has changed since.
  Task<Found> put_read(Try& tried, const Subject& subject, RecordId id, std::optional<Item> item);
  Task<std::expected<std::optional<std::string>, NoReply>> part(RecordId id, char kind,
                                                                std::string_view bytes,
                                                                const std::vector<PieceRef>& refs);
  Task<std::expected<std::optional<BytesList>, NoReply>> log_of(RecordId id, ItemState item);
  /// True: the item has another version by now, so that missing pieces prove no damage.
  Task<std::expected<bool, NoReply>> has_changed(RecordId id, std::string version);

  /// The step over the records of `tried`; its write is in the table.
  StoreResult step(Try& tried, const StoreCall& call, const Subject& subject, StoreTime now);
  /// Whether it may be written as it is; else what to do before.
  Task<Outcome> prepare(Try& tried, const Subject& subject, const RecordWrite& written,
                        StoreTime now);
  /// Writes the step, and counts its usage and the lease that it ended.
  Task<Outcome> commit(Try& tried, const StoreCall& call, const Subject& subject,
                       RecordWrite written, StoreTime now);
  Task<Outcome> write(Try& tried, const StoreCall& call, const Subject& subject,
                      const RecordWrite& write, StoreTime now);
  Task<Outcome> on_refused(Try& tried, const StoreCall& call, const Subject& subject,
                           const RecordWrite& write, std::string version, Reply reply);
  Task<Outcome> block_old_names(Try& tried, const Subject& subject, StoreTime now);
  void keep(const RecordWrite& write, const RowVersion& version);
  /// For a reserve that makes a new record: an expired record under another of its names.
  static std::optional<RecordId> found_under_other_name(const Try& tried, const Subject& subject,
                                                        const RecordWrite& write);
  Fence last_fence_before(const Try& tried, StoreTime now) const;

  Client& client_;
  RowVersions& versions_;
  IdentitySteps& identity_;
  Tallies& tallies_;
  std::function<StoreTime()> clock_;
  Pieces pieces_{client_};
  Attempts attempts_;
  UsageLedger usage_{client_, tallies_};
  Fence last_fence_ = 0;
  std::uint64_t leases_ended_ = 0;
};

}  // namespace idem::dynamodb
