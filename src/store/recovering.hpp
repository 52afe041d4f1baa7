#pragma once

#include "store/store_file.hpp"

#include <functional>
#include <memory>
#include <set>
#include <vector>

/// What every kind of embedded store needs to make a store of what can be read of a damaged one.
namespace idem {

/// Puts records that were found into a store, in any order: of each the one with the latest change
/// stays. They stay as they were; what was not settled becomes unknown when the store is opened as
/// a restored one.
class RecoveredRecords {
 public:
  /// Lines of evidence about a record, in their order.
  using EvidenceOf = std::function<std::vector<EvidenceEntry>(const RecordId&)>;

  RecoveredRecords(Store& to, EvidenceOf evidence_of)
      : to_(to), evidence_of_(std::move(evidence_of)) {}

  /// With its answer or its request, if it has one.
  std::expected<void, StoreError> put(Record&& record);
  /// Must come at the end.
  std::expected<void, StoreError> flush();

 private:
  Store& to_;
  EvidenceOf evidence_of_;
  std::vector<Record> waiting_;
  std::set<RecordId> ids_;  ///< Of those.
};

/// Of a record whose answer or request cannot be read: whether it ran is known no better than of
/// one that was open at the backup of a restored store.
void lose_bytes(Record& record);

/// What the source of a recovery lacks already because it is a copy: keys that came after
/// `copied_at`. The epoch: after a moment that nobody knows.
void add_what_a_copy_lacks(Recovered& recovered, std::optional<StoreTime> copied_at);

/// `copied_at` of the made store, from which a restore knows since when keys may be missing.
StoreTime copied_at_of(const Recovered& recovered);

/// The `to` of an order is there, or is the store itself.
std::optional<StoreFileError> why_not_recovered(const RecoverOrder& order);

}  // namespace idem
