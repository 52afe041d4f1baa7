#pragma once

#include <idem/record.hpp>

#include <expected>
#include <string>
#include <string_view>

/// How a record lies in a store whose rows are bytes, but for its id (by which it is found), its
/// request and its answer (which are read on their own).
namespace idem {

inline constexpr std::uint8_t stored_record_version = 3;

/// Replaces `out`, whose memory is used again. Layout (byte_cursor.hpp), in this order: version,
/// state, lease policy, release basis (0: none) and flags, one byte each; fingerprint version (32
/// bits) and digest; fence (64 bits) and token; locked_until, retention, tombstone, created_at and
/// changed_at (64 bits each, two's complement); reconcile_attempts (32 bits); generation (64 bits;
/// version 1 has none, all its records are of generation 1); of reconcile_after, completed_at,
/// expires_at, tombstone_until and charged (64 bits each) those that the flags name; then scope,
/// operation, owner, recovery_point, last_error_code and upstream_reference, framed; and, where one
/// of them is not empty, which makes the version 3 and not 2, provider and sealed_key, framed.
void encode_record(const Record& record, std::string& out);

/// Total: any bytes give a record or the reason why not; never reads past the end. Refuses what
/// encode_record() does not write, and a record that lacks what its state needs. The record has no
/// id and no answer; stored_request is present and empty where there is one.
std::expected<Record, std::string_view> decode_record(std::string_view bytes);

}  // namespace idem
