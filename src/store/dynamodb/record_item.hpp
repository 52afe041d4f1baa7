#pragma once

#include "core/transitions/snapshot_table.hpp"
#include "store/dynamodb/pieces.hpp"

#include <utility>

/// A record as one item, with its answer, its request and its evidence log, so that one write on a
/// condition changes all of them. An item without a record is a blank: it keeps the log, or for a
/// while the fence of a record that is gone.
namespace idem::dynamodb {

/// What a step must know of an item to replace it.
struct ItemState {
  std::string version{};  ///< Empty: there is no item.
  bool has_record = false;
  AnswerMark mark = 0;
  Fence fence = 0;  ///< Of a blank.
  std::size_t evidence_bytes = 0;
  BytesList evidence{};
  std::vector<PieceRef> answer{};  ///< One or none.
  std::vector<PieceRef> request{};
  std::vector<PieceRef> older_evidence{};

  bool has_log() const noexcept { return !evidence.empty() || !older_evidence.empty(); }
};
ItemState state_of(const Item& item);

/// Bytes for one attribute, or for pieces.
struct LargePart {
  char kind;
  std::string bytes;
};

/// A step's write as one update of the item. Parts above the bound are left out of it; the caller
/// writes them as pieces and then names them.
class RecordUpdate {
 public:
  RecordUpdate(const RecordWrite& write, const ItemState& seen, const RowVersion& version,
               StoreTime now);

  std::vector<LargePart>& large_parts() noexcept { return large_; }
  void name_pieces(char kind, const PieceRef& ref);

  /// True: the item goes as a whole.
  bool is_erase() const noexcept { return is_erase_; }
  const Update& update() const noexcept { return update_; }
  /// The pieces that no item names once this is written.
  const std::vector<std::pair<char, PieceRef>>& dropped() const noexcept { return dropped_; }

 private:
  void write_record(const RecordWrite& write, const ItemState& seen, const RowVersion& version);
  void write_blank(const RecordWrite& write, const ItemState& seen, StoreTime now);
  void write_part(char kind, std::optional<std::string> bytes, const std::vector<PieceRef>& before);
  void write_evidence(const RecordWrite& write, const ItemState& seen);

  Update update_;
  bool is_erase_ = false;
  std::vector<PieceRef> older_evidence_;
  std::vector<LargePart> large_;
  std::vector<std::pair<char, PieceRef>> dropped_;
};

/// A log's lines as the bytes of pieces, and back.
std::string framed(const BytesList& lines);
BytesList parse_framed(std::string_view bytes);

}  // namespace idem::dynamodb
