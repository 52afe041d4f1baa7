#pragma once

#include "store/dynamodb/client.hpp"
#include "store/dynamodb/table.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What does not fit into a record's item: large answers and requests, and long evidence logs. The
/// pieces of one write are written before the record's item, which then names them by the write's
/// version. So a reader finds all pieces that an item names, unless the item has changed since. The
/// pieces of a write that failed are orphans; a later sweep removes them. Loop's thread only.
namespace idem::dynamodb {

/// The pieces of one write.
struct PieceRef {
  std::string version;  ///< 16 bytes.
  std::uint16_t count = 0;
  bool operator==(const PieceRef&) const = default;
};
/// As an attribute: version and count (16 bits, little-endian), one after the other.
std::string to_bytes(const std::vector<PieceRef>& refs);
/// Total: bytes that are no whole reference end the list.
std::vector<PieceRef> parse_refs(std::string_view bytes);

class Pieces {
 public:
  explicit Pieces(Client& client) : client_(client) {}

  /// `kind`: the name of the item's attribute that it would otherwise be in.
  Task<std::expected<PieceRef, NoReply>> write(RecordId id, RowVersion version, char kind,
                                               std::string bytes, StoreTime now);
  /// None: at least one is missing.
  Task<std::expected<std::optional<std::string>, NoReply>> read(RecordId id, PieceRef ref,
                                                                char kind);
  /// Removes them; those that it cannot remove stay as orphans.
  Task<void> remove(RecordId id, PieceRef ref, char kind);

  /// Removes the orphans of a bucket that are old enough that no write can be about to name them.
  Task<void> sweep(std::size_t bucket, StoreTime now);

 private:
  Task<bool> is_named(const Key& piece);

  Client& client_;
};

}  // namespace idem::dynamodb
