#pragma once

#include <idem/record.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Digests: what names a record and what tells two requests apart (protocol.md §2, §10).
namespace idem {

using Secret = std::array<std::uint8_t, 32>;

/// What was asked. `target` is the raw path and query bytes as received; authority is left out.
struct FingerprintParts {
  std::string_view method;
  std::string_view target;
  std::string_view content_type;  ///< As received; parameters and case are ignored.
  std::span<const std::string_view>
      chosen_headers;  ///< name, value, name, value, ... ; none by default.
  std::string_view body;
};

/// What a route counts as part of the request besides method, target and media type.
struct FingerprintRule {
  std::vector<std::string> include;  ///< JSON Pointers (RFC 6901); empty: the whole body.
  std::vector<std::string> exclude;  ///< JSON Pointers that do not count.
  std::vector<std::string> headers;  ///< Names of fields that count.
  bool operator==(const FingerprintRule&) const = default;
};

/// The version of the rules that fingerprint() follows.
inline constexpr std::uint32_t fingerprint_version = 1;

/// HMAC-SHA-256 under a key derived from `secret`, over length-framed parts. `application/json` and
/// `+json` bodies enter by idem::fingerprint_form, and as raw bytes when that refuses them; all
/// other bodies enter raw. The two forms can never collide: a tag says which one it was. The whole
/// body.
Fingerprint fingerprint(const Secret& secret, const FingerprintParts& parts);

/// The record's name: see RecordId. No join of two different triples collides (length framing).
RecordId record_id(const Secret& secret, std::string_view scope, std::string_view operation,
                   std::string_view key);

/// A stand-in for a static credential (API key, Basic) as a scope value: 64 hex digits, keyed.
std::string credential_digest(const Secret& secret, std::string_view credential);

/// Unpredictable bytes from the operating system's generator, by way of OpenSSL; aborts if it
/// fails.
void random_bytes(std::span<std::uint8_t> out);
Token random_token();

}  // namespace idem
