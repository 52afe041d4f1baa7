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
/// Digests that name records and distinguish requests (protocol.md §2, §10).
namespace idem::inline v0_1 {

/// The key of names and fingerprints.
using Secret = std::array<std::uint8_t, 32>;

/// What a fingerprint covers besides method, target and media type. Order and repetitions in the
/// three lists do not matter.
struct FingerprintRule {
  /// JSON Pointers (RFC 6901) to what is covered. Empty, or if none matches: the whole body.
  std::vector<std::string> include{};
  std::vector<std::string>
      exclude{};  ///< JSON Pointers to what is left out; they win over `include`.
  std::vector<std::string> headers{};  ///< Names of header fields that are covered.
  bool operator==(const FingerprintRule&) const = default;

  /// True: the whole body is covered, and no header field.
  bool empty() const noexcept { return include.empty() && exclude.empty() && headers.empty(); }
};

/// True for a header field that counts without being named by a rule (protocol.md §10): it says
/// what is to be done, and to what, and a retry does not change it. Names that a server may confuse
/// with such a one count, too.
bool counts_always(std::string_view field_name) noexcept;

/// The error is a sentence: an invalid pointer or field name, an `exclude` of the whole body, a
/// list longer than limits.hpp allows.
[[nodiscard]] std::expected<void, std::string> check_rule(const FingerprintRule& rule);

/// A body as it was sent, and every line of its Content-Encoding.
struct EncodedBody {
  std::string_view body;
  std::span<const std::string_view> content_encoding;
};

/// The parts of a request. `target`: the raw path and query bytes as received, without authority.
struct FingerprintParts {
  std::string_view method;
  std::string_view target;
  std::string_view content_type;  ///< As received; parameters and case are ignored.
  /// name, value, name, value, ... : every line of the fields that the rule names or that
  /// counts_always(), in their order.
  std::span<const std::string_view> chosen_headers;
  std::string_view body;
  /// Null: an empty rule. Under a rule that check_rule() refuses, the raw body is covered.
  const FingerprintRule* rule = nullptr;
  /// Every line of Content-Encoding, as received. `identity` and case are ignored.
  std::span<const std::string_view> content_encoding{};
  /// Where `body` is what an encoded body holds, which a route may let count: that body. A record
  /// may be older than that setting, so its fingerprint is offered, too.
  const EncodedBody* as_sent = nullptr;
};

/// The version of the rules that RequestDigest follows.
inline constexpr std::uint32_t fingerprint_version = 1;

/// A request, digested once and then keyed under each live secret.
///
/// JSON (`application/json`, `+json`) counts in idem::fingerprint_form, or as its bytes where that
/// refuses it; the fields of `application/x-www-form-urlencoded` by name (form_fields.hpp);
/// `multipart/*` part by part (multipart.hpp); an encoded body (RFC 9110 §8.4) as its raw bytes and
/// its encoding, by which the upstream decodes them; all else as its bytes. A request under a rule
/// also has the fingerprint without it, so that records are still found after a rule is added. No
/// two forms can collide: tags name the form, and every part is framed. A digest covers the whole
/// body but for what the rule leaves out.
class RequestDigest {
 public:
  /// Reads the whole body.
  explicit RequestDigest(const FingerprintParts& parts);

  /// HMAC-SHA-256 under a key derived from `secret`: one for each rule that could have made the
  /// fingerprint of a record of this request. Stores keep the first.
  std::vector<Fingerprint> under(const Secret& secret) const;

 private:
  struct Framed {
    RuleName rule{};
    std::string bytes;  ///< All that counts.
    BodyKind kind = BodyKind::unread;
    /// The values, in the same frame; empty where that gives the same bytes, or kind is unread.
    std::string values{};
  };
  void add(const FingerprintParts& parts);
  void add(const FingerprintParts& parts, std::span<const std::string_view> headers,
           const FingerprintRule& rule);

  std::vector<Framed> framed_;
};

/// The first of RequestDigest(parts).under(secret).
Fingerprint fingerprint(const Secret& secret, const FingerprintParts& parts);

/// The record's name: see RecordId. No join of two different triples collides (length framing).
RecordId record_id(const Secret& secret, std::string_view scope, std::string_view operation,
                   std::string_view key);

/// A secret made of a file's bytes, without trailing line ends: editors add them.
Secret secret_from(std::string_view material);

/// A secret's public name, which does not reveal it: 16 hex digits, keyed by the secret.
std::string secret_id(const Secret& secret);

/// A stand-in for a static credential (API key, Basic) as a scope value: 64 hex digits, keyed.
std::string credential_digest(const Secret& secret, std::string_view credential);

/// Unpredictable bytes from the operating system's generator, by way of OpenSSL; aborts if it
/// fails.
void random_bytes(std::span<std::uint8_t> out);
/// A new token from random_bytes().
Token random_token();

}  // namespace idem::inline v0_1
