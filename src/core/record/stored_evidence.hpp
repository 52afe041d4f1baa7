#pragma once

#include <idem/evidence.hpp>

#include <expected>
#include <string>
#include <string_view>

/// A line of the evidence log as bytes (byte_cursor.hpp): fence (64 bits), before, after and
/// applied (one byte each), observed_at and recorded_at (64 bits each, two's complement); then
/// source, evidence and reason, framed.
namespace idem {

std::string encode_evidence(const EvidenceEntry& entry);

/// Total: any bytes give a line or the reason why not.
std::expected<EvidenceEntry, std::string_view> decode_evidence(std::string_view bytes);

/// Why a line is damaged whose checksum, over encode_evidence() and the record's id, is another.
inline constexpr std::string_view evidence_differs =
    "the checksum of a line of its evidence does not match";

}  // namespace idem
