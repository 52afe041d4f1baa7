#pragma once

#include "store/dynamodb/item.hpp"
#include "store/record_rows.hpp"

#include <string_view>

/// Where the store's things lie in its table, and the names of their attributes: an item's size is
/// billed with them, so they have one or two letters.
namespace idem::dynamodb {

namespace attribute {
inline constexpr std::string_view partition = "p";  ///< Text: what it is, and its bucket.
inline constexpr std::string_view sort = "s";       ///< Bytes: which one.
/// 16 bytes that each write replaces: what conditions compare.
inline constexpr std::string_view version = "v";
inline constexpr std::string_view row = "r";  ///< record_rows.hpp; none: there is no record.
inline constexpr std::string_view answer = "a";
inline constexpr std::string_view answer_pieces = "ap";
inline constexpr std::string_view request = "q";
inline constexpr std::string_view request_pieces = "qp";
inline constexpr std::string_view evidence = "e";          ///< A list of lines, the latest.
inline constexpr std::string_view evidence_pieces = "ep";  ///< Those before them, in order.
inline constexpr std::string_view fence = "f";             ///< Of a record that is gone.
inline constexpr std::string_view due = "d";               ///< The index's: a list, and its part.
inline constexpr std::string_view due_at = "t";
inline constexpr std::string_view claims = "c";  ///< The other index's.
inline constexpr std::string_view claimable_at = "w";
inline constexpr std::string_view value = "x";  ///< Of an item that is no record.
inline constexpr std::string_view written_at = "m";
}  // namespace attribute

/// The indexes: sparse, and of keys alone.
inline constexpr std::string_view due_index = "due";
inline constexpr std::string_view claims_index = "claims";

/// The first byte of a record's id chooses its bucket, so the buckets in order hold the records in
/// order, and the service can spread them.
inline constexpr std::size_t bucket_count = 256;
std::string record_partition(std::size_t bucket);
Key record_key(const RecordId& id);

/// Parts of what is too large for its item: `version` names the write that made them.
std::string pieces_partition(std::size_t bucket);
Key piece_key(const RecordId& id, std::string_view version, char kind, std::size_t number);

Key identity_key();
Key counts_key();
Key usage_key(const std::string& scope);

/// Lists of the index are split in so many parts: each takes 1,000 writes a second.
inline constexpr std::size_t list_parts = 16;
/// `list`: a letter.
std::string list_part(char list, std::size_t part);
inline constexpr char list_of_blanks = 'z';
char list_of(State state);
/// Behind all moments: such an item is never due.
inline constexpr std::int64_t never_due = 9'999'999'999'999;

/// Sets the record's places in both indexes.
void set_places(Update& update, const Record& record);

}  // namespace idem::dynamodb
