#pragma once

#include "store/compare_and_set/steps.hpp"
#include "store/dynamodb/identity_steps.hpp"
#include "store/dynamodb/record_item.hpp"
#include "store/dynamodb/tallies.hpp"

/// The protocol's steps over the items of a table (store/compare_and_set/steps.hpp).
namespace idem::dynamodb {

using compare_and_set::Next;
using compare_and_set::Outcome;
using compare_and_set::Subject;

/// An item as it was read.
struct SeenItem {
  RecordId id;
  ItemState item{};

  bool is_there() const noexcept { return item.has_record; }
  void assume(const RowVersion& written) {
    item.version = bytes_of(written);
    item.has_record = true;
  }
};

class Steps : public compare_and_set::Steps<Steps, SeenItem> {
 public:
  /// `clock`: a test's, in place of the service's; or empty.
  Steps(Client& client, RowVersions& versions, IdentitySteps& identity, Tallies& tallies,
        std::function<StoreTime()> clock);

  Task<std::expected<std::vector<EvidenceEntry>, StoreError>> evidence_of(RecordId id);

  /// Removes a blank that is over. Its log keeps it.
  Task<void> end_blank(RecordId id);

  /// None: no answer of the service has shown its clock yet.
  std::optional<StoreTime> now() const;

 private:
  friend class compare_and_set::Steps<Steps, SeenItem>;
  using Found = std::expected<Next, NoReply>;

  Task<std::optional<StoreError>> admit(const Subject& subject);
  Task<std::expected<StoreTime, StoreError>> now_for(RecordId id);
  static bool have_one_clock(const RecordId&, const RecordId&) { return true; }
  Task<Outcome> look(Tried& tried, const Subject& subject);
  /// Puts an item that was read into the table, with its pieces. look_again: it has changed since.
  Task<Found> put_read(Tried& tried, const Subject& subject, RecordId id, std::optional<Item> item);
  Task<std::expected<std::optional<std::string>, NoReply>> part(RecordId id, char kind,
                                                                std::string_view bytes,
                                                                const std::vector<PieceRef>& refs);
  Task<std::expected<std::optional<BytesList>, NoReply>> log_of(RecordId id, ItemState item);
  /// True: the item has another version by now, so that missing pieces prove no damage.
  Task<std::expected<bool, NoReply>> has_changed(RecordId id, std::string version);

  Task<Outcome> prepare(Tried& tried, const Subject& subject, const RecordWrite& written,
                        StoreTime now);
  Task<Outcome> write(Tried& tried, const StoreCall& call, const Subject& subject,
                      RecordWrite& write, StoreTime now);
  void is_written(const RecordWrite& write);
  Task<Outcome> on_refused(Tried& tried, const StoreCall& call, const Subject& subject,
                           const RecordWrite& write, std::string version, Reply reply);
  Task<Outcome> block_old_names(Tried& tried, const Subject& subject, StoreTime now);
  void keep(const RecordWrite& write, const RowVersion& version);

  Client& client_;
  RowVersions& versions_;
  IdentitySteps& identity_;
  Tallies& tallies_;
  Pieces pieces_{client_};
  UsageLedger usage_{client_, tallies_};
};

}  // namespace idem::dynamodb

extern template class idem::compare_and_set::Steps<idem::dynamodb::Steps, idem::dynamodb::SeenItem>;
