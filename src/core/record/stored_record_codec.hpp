#pragma once

#include <idem/record.hpp>

#include <expected>
#include <string>
#include <string_view>

/// A record as bytes, without its id (the key of its row), its request and its answer (which are
/// read on their own).
namespace idem {

/// 1 to 3 had no checksum.
inline constexpr std::uint8_t stored_record_version = 4;

/// Replaces `out`, whose memory is used again. Layout (byte_cursor.hpp), in this order: version,
/// state, lease policy, release basis (0: none) and flags, one byte each; fingerprint version (32
/// bits) and digest; fence (64 bits) and token; locked_until, retention, tombstone, created_at and
/// changed_at (64 bits each, two's complement); reconcile_attempts (32 bits); generation (64 bits);
/// those of reconcile_after, completed_at, expires_at, tombstone_until and charged (64 bits each)
/// that the flags name; then scope, operation, owner, recovery_point, last_error_code and
/// upstream_reference, framed; provider and sealed_key, framed, if one of them is not empty; the
/// checksum (checksum.hpp), which also covers the record's id.
void encode_record(const Record& record, std::string& out);

/// Total: any bytes give a record or the reason why not; never reads past the end. Refuses bytes
/// that encode_record() does not write for this id, and a record without a member that its state
/// needs. The record has no answer; stored_request is present and empty if there is one.
std::expected<Record, std::string_view> decode_record(const RecordId& id, std::string_view bytes);

}  // namespace idem
