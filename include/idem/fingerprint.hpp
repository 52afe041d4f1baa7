#pragma once

#include <idem/record.hpp>

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Digests: what names a record and what tells two requests apart (protocol.md §2, §10).
namespace idem::inline v0_1 {

/// Names and fingerprints are made under one.
using Secret = std::array<std::uint8_t, 32>;

/// What a route counts as part of the request besides method, target and media type. Order and
/// repetitions in the three lists do not count.
struct FingerprintRule {
  /// JSON Pointers (RFC 6901). Empty, or where none meets anything: the whole body.
  std::vector<std::string> include{};
  std::vector<std::string>
      exclude{};  ///< JSON Pointers that do not count; they win over `include`.
  std::vector<std::string> headers{};  ///< Names of fields that count.
  bool operator==(const FingerprintRule&) const = default;

  /// All of the request counts.
  bool empty() const noexcept { return include.empty() && exclude.empty() && headers.empty(); }
};

/// A sentence when the rule cannot be followed: no pointer, an `exclude` of the whole body, no
/// field name, more of a list than limits.hpp allows.
std::expected<void, std::string> check_rule(const FingerprintRule& rule);

/// What was asked. `target` is the raw path and query bytes as received; authority is left out.
struct FingerprintParts {
  std::string_view method;
  std::string_view target;
  std::string_view content_type;  ///< As received; parameters and case are ignored.
  /// name, value, name, value, ... : every line of the fields that the rule names, in their order.
  std::span<const std::string_view> chosen_headers;
  std::string_view body;
  /// None: an empty one. One that check_rule() refuses lets the raw body count.
  const FingerprintRule* rule = nullptr;
  /// Every line of Content-Encoding, as received. `identity` and case are ignored.
  std::span<const std::string_view> content_encoding{};
};

/// The newest version of the rules that RequestDigest follows.
inline constexpr std::uint32_t fingerprint_version = 4;

/// What was asked, digested once and then keyed under as many secrets as are live.
///
/// Version 1 knows JSON by idem::fingerprint_form (`application/json`, `+json`; raw bytes where
/// that refuses them) and takes all other bodies raw. Version 2 differs from it for form and
/// multipart bodies: the fields of `application/x-www-form-urlencoded` by name (form_fields.hpp),
/// `multipart/*` part by part (multipart.hpp). Version 3 is that of a rule, and begins with its
/// name. So most requests have a fingerprint of version 1 alone, and one under a rule has those
/// without it, too: a record does not get lost when a rule is added. Version 4 is that of an
/// encoded body (RFC 9110 §8.4): its bytes count as they are, and so does how they are encoded,
/// because the upstream decodes them by that. No two forms can collide: tags
/// say which one it was, and every part is framed. Always the whole body but for what the rule
/// leaves out.
class RequestDigest {
 public:
  /// Reads the whole body.
  explicit RequestDigest(const FingerprintParts& parts);

  /// HMAC-SHA-256 under a key derived from `secret`: one for each version that could have made the
  /// fingerprint of a record of this request. The first is what is stored.
  std::vector<Fingerprint> under(const Secret& secret) const;

 private:
  struct Framed {
    std::uint32_t version = 0;
    std::string bytes;
    std::optional<RuleName> rule{};
  };
  std::vector<Framed> framed_;
};

/// The first of RequestDigest(parts).under(secret).
Fingerprint fingerprint(const Secret& secret, const FingerprintParts& parts);

/// The record's name: see RecordId. No join of two different triples collides (length framing).
RecordId record_id(const Secret& secret, std::string_view scope, std::string_view operation,
                   std::string_view key);

/// A secret out of a file's bytes. Line ends behind them do not count: editors add them.
Secret secret_from(std::string_view material);

/// What a secret is known by where it must not be told: 16 hex digits, keyed by itself.
std::string secret_id(const Secret& secret);

/// A stand-in for a static credential (API key, Basic) as a scope value: 64 hex digits, keyed.
std::string credential_digest(const Secret& secret, std::string_view credential);

/// Unpredictable bytes from the operating system's generator, by way of OpenSSL; aborts if it
/// fails.
void random_bytes(std::span<std::uint8_t> out);
/// A new one.
Token random_token();

}  // namespace idem::inline v0_1
