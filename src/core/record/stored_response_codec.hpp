#pragma once

#include <idem/record.hpp>

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

/// A stored answer as bytes, without its body, which is stored beside it unchanged: status, whether
/// the body was kept, and the header fields, length-framed, so that they may hold any byte
/// (protocol.md §14).
namespace idem {

inline constexpr std::uint8_t stored_answer_version = 1;

/// Replaces `out`, whose memory is used again. Layout (byte_cursor.hpp): version (8 bits), status
/// (16), body_stored (8: 0 or 1), then for each field name and value, framed; the end of the bytes
/// is the end of the list.
void encode_answer(const StoredResponse& response, std::string& out);
/// The size of what encode_answer() writes.
std::size_t encoded_bytes(const StoredResponse& response) noexcept;

/// The answer without its body. Total: any bytes give an answer or the reason why not; never reads
/// past the end. Refuses bytes that encode_answer() does not write for a status of 100 to 999.
std::expected<StoredResponse, std::string_view> decode_answer(std::string_view bytes);

/// encode_answer() with a checksum at the end (checksum.hpp), which also covers the record's id and
/// the body.
void encode_checked_answer(const RecordId& id, const StoredResponse& response, std::string& out);

/// The answer with its body, which was stored beside it. Refuses bytes that encode_checked_answer()
/// did not write for this record and this body.
std::expected<StoredResponse, std::string_view> decode_checked_answer(const RecordId& id,
                                                                      std::string_view bytes,
                                                                      std::string_view body);

/// Of a stored answer: SHA-256 of encode_answer(), behind its length (64 bits, little-endian), and
/// of the body. Of a stored request: of its bytes.
std::array<std::uint8_t, 32> digest_of_stored(const StoredResponse& response);
std::array<std::uint8_t, 32> digest_of_stored(std::string_view request);

/// As decode_answer(), with or without a checksum, but reads no field: for listings.
std::expected<StoredResponse, std::string_view> decode_status(std::string_view bytes);

}  // namespace idem
