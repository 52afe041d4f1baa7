#pragma once

#include "store/dynamodb/client.hpp"
#include "store/dynamodb/dynamodb_store.hpp"
#include "store/store_identity.hpp"

#include <functional>
#include <set>

/// Settles and changes a store's identity (protocol.md §2), which is one item. No step sees all
/// records at once, and a reserve does not look at the identity's item, so a node reserves only
/// while it has read the identity within the last few seconds, and a change waits for longer than
/// that before it reads the records and decides. Loop's thread only.
namespace idem::dynamodb {

/// What the store's live records are named by.
struct Holdings {
  std::set<std::string, std::less<>> operations{};
  GenerationCensus census{};
};

class IdentitySteps {
 public:
  using Now = std::function<std::optional<StoreTime>()>;
  /// Calls the function now and then, so that the change does not count as abandoned; false ends
  /// it.
  using Beat = std::function<Task<bool>()>;
  using Survey = std::function<Task<std::expected<Holdings, NoReply>>(Beat)>;

  IdentitySteps(Client& client, RowVersions& versions, const DynamodbWaits& waits)
      : client_(client), versions_(versions), waits_(waits) {}

  void set_now(Now now) { now_ = std::move(now); }
  /// `survey`: reads all records.
  void set_survey(Survey survey) { survey_ = std::move(survey); }

  /// At the start. The error is for people.
  struct Settled {
    Identity identity;
    std::array<std::uint8_t, 16> store_id{};
    bool is_new = false;
  };
  Task<std::expected<Settled, std::string>> settle(IdentitySettings settings, WhichStore which);

  Task<std::expected<AdoptRoutes::Reply, NoReply>> adopt(AdoptRoutes verb,
                                                         IdentitySettings settings);

  /// Whether a reserve of this generation may be sent now; none: it may. Reads the identity if the
  /// last reading is too old, and waits while another node changes it.
  Task<std::optional<StoreError>> admit(std::uint64_t generation);
  /// The same as far as it is known.
  bool is_admitted(std::uint64_t generation) noexcept;
  /// Reads the identity ahead of its time, if reserves come, so that they need not wait for it.
  bool is_due() const noexcept;
  Task<void> refresh();

  /// By which a claim may begin now; none: nobody may begin work in this store.
  Task<std::optional<std::uint64_t>> claiming_generation();
  /// Reserves of the former generation may still be on their way to the table.
  bool may_have_late_writes(StoreTime now) const noexcept;

 private:
  /// Changes `next`, which is then recorded. False: the identity stays as it was.
  using Decide = std::function<bool(StoreIdentity& next, const Holdings& holdings)>;
  /// The identity's item.
  struct Stored {
    IdentityValue value;
    bool is_used = false;  ///< A node has reserved by it, or is about to.
  };

  Task<std::expected<std::optional<Stored>, NoReply>> read();
  /// False: the item is not as `before`.
  Task<std::expected<bool, NoReply>> swap(std::optional<Stored> before, Stored after);
  Task<std::expected<Settled, std::string>> make(IdentitySettings settings, WhichStore which);
  Task<std::expected<bool, NoReply>> is_table_empty();
  Task<std::expected<void, NoReply>> change(Decide decide, bool needs_survey);
  Task<std::expected<Stored, NoReply>> begin_change();
  Task<std::expected<Holdings, NoReply>> survey(Stored& begun);
  Task<bool> beat(Stored& begun);
  Task<std::expected<void, NoReply>> take_back();
  Task<std::optional<StoreError>> mark_used();
  bool is_abandoned(const StoreIdentity& identity, StoreTime now) const noexcept;
  void remember(const Stored& stored, MonotonicTime asked_at);

  Client& client_;
  RowVersions& versions_;
  DynamodbWaits waits_;
  Now now_;
  Survey survey_;
  std::optional<Stored> known_;
  MonotonicTime asked_at_{};  ///< Before the reading of known_ was sent.
  MonotonicTime wanted_at_{};
  std::string lost_;  ///< Why no reserve may be sent until the store is opened again.
  std::optional<std::array<std::uint8_t, 16>> store_id_;
  bool is_reading_ = false;
};

}  // namespace idem::dynamodb
