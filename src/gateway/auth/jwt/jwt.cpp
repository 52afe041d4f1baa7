#include "gateway/auth/jwt/jwt.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/base64.hpp"
#include "core/bytes/digests.hpp"
#include "gateway/auth/jwt/claims.hpp"
#include "gateway/auth/jwt/key_set.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

namespace idem::gateway {
namespace {

using Moment = std::chrono::sys_time<Millis>;
using Fault = std::unexpected<JwtFault>;

// The year 5138: beyond it sums with a clock could overflow.
constexpr double seconds_max = 1e11;

std::expected<std::string, std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::unexpected(path + ": cannot be read");
  std::string text(limits::jwt_key_file_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::unexpected(path + ": cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > limits::jwt_key_file_bytes_max) {
    return std::unexpected(path + ": larger than 256 KiB");
  }
  return text;
}

/// RFC 7519 §2: seconds since 1970, with or without a fraction.
std::optional<Moment> moment_of(const JsonObject& claims, std::string_view name) {
  const auto seconds = claims.number(name);
  if (!seconds || !std::isfinite(*seconds) || *seconds < 0 || *seconds > seconds_max) {
    return std::nullopt;
  }
  return Moment(Millis(static_cast<std::int64_t>(std::floor(*seconds * 1000))));
}

/// The first half of SHA-256, in hexadecimal digits.
std::string issuer_digest(std::string_view issuer) { return to_hex(sha256(issuer)).substr(0, 32); }

struct Parts {
  std::string_view signed_text;
  std::string header;
  std::string payload;
  std::string signature;
};

/// RFC 7515 §7.1: three parts, each in its one spelling. Five would be an encrypted token.
std::optional<Parts> split(std::string_view token) {
  if (token.empty() || token.size() > limits::jwt_bytes_max) return std::nullopt;
  const auto first = token.find('.');
  const auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  auto header = from_base64url(token.substr(0, first));
  auto payload = from_base64url(token.substr(first + 1, second - first - 1));
  auto signature = from_base64url(token.substr(second + 1));
  if (!header || !payload || !signature) return std::nullopt;
  return Parts{token.substr(0, second), std::move(*header), std::move(*payload),
               std::move(*signature)};
}

bool same_media_type(std::string_view given, std::string_view known) noexcept {
  static constexpr std::string_view tree = "application/";
  const auto equal = [](char a, char b) { return lower_letter(a) == b; };
  if (given.size() == known.size() + tree.size() &&
      std::ranges::equal(given.substr(0, tree.size()), tree, equal)) {
    given.remove_prefix(tree.size());
  }
  return std::ranges::equal(given, known, equal);
}

/// RFC 8725 §3.11: a token made for something else (a logout, a proof of possession) says so here.
bool is_of_known_type(const JsonObject& header) {
  if (header.has("crit") || header.has("cty") || header.has("enc") || header.has("zip")) {
    return false;
  }
  if (!header.has("typ")) return true;
  const auto type = header.text("typ");
  return type && (same_media_type(*type, "jwt") || same_media_type(*type, "at+jwt"));
}

bool is_scope_text(std::string_view text) noexcept {
  return !text.empty() && text.size() <= limits::scope_bytes_max &&
         std::ranges::none_of(text, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < 0x20 || byte == 0x7F;
         });
}

class Verifier final : public JwtVerifier {
 public:
  Verifier(JwtRules rules, JwtAlgorithm algorithm, KeySet keys)
      : rules_(std::move(rules)),
        algorithm_(algorithm),
        keys_(std::move(keys)),
        issuer_digest_(issuer_digest(rules_.issuer)) {}

  std::expected<JwtHolder, JwtFault> verify(std::string_view token, Moment now) const override {
    const auto parts = split(token);
    const auto header = parts ? JsonObject::parse(parts->header) : std::nullopt;
    if (!header || !is_of_known_type(*header)) return Fault(JwtFault::malformed);
    if (header->text("alg") != name_of(algorithm_)) return Fault(JwtFault::algorithm);
    const auto kid = header->text("kid");
    if (header->has("kid") && !kid) return Fault(JwtFault::malformed);
    const SignatureKey* key = keys_.find(kid);
    if (key == nullptr) return Fault(JwtFault::unknown_key);
    if (!key->verifies(parts->signed_text, parts->signature)) return Fault(JwtFault::signature);
    const auto claims = JsonObject::parse(parts->payload);
    if (!claims) return Fault(JwtFault::malformed);
    return holder(*claims, now);
  }

  const JwtRules& rules() const noexcept override { return rules_; }

 private:
  std::expected<JwtHolder, JwtFault> holder(const JsonObject& claims, Moment now) const {
    const auto expiry = moment_of(claims, "exp");
    if (!expiry || now >= *expiry + rules_.leeway) return Fault(JwtFault::expired);
    for (const auto* name : {"nbf", "iat"}) {
      if (!claims.has(name)) continue;
      const auto from = moment_of(claims, name);
      if (!from || now + rules_.leeway < *from) return Fault(JwtFault::not_yet_valid);
    }
    if (claims.text("iss") != rules_.issuer) return Fault(JwtFault::issuer);
    // RFC 7519 §4.1.3: a recipient that is not in the token's audience must refuse the token.
    const auto audiences = claims.texts("aud");
    const bool meant = !claims.has("aud")
                           ? rules_.audience.empty()
                           : audiences && !rules_.audience.empty() &&
                                 std::ranges::find(*audiences, rules_.audience) != audiences->end();
    if (!meant) return Fault(JwtFault::audience);
    const auto value = claims.text(rules_.claim);
    if (!value || !is_scope_text(*value)) return Fault(JwtFault::claim);
    // The digest has a fixed length, so no two pairs join to one text.
    return JwtHolder{*value + '#' + issuer_digest_, *expiry + rules_.leeway};
  }

  JwtRules rules_;
  JwtAlgorithm algorithm_;
  KeySet keys_;
  std::string issuer_digest_;
};

}  // namespace

bool looks_like_jwt(std::string_view token) {
  if (std::ranges::count(token, '.') < 2) return false;
  const auto header = from_base64url(token.substr(0, token.find('.')));
  if (!header) return false;
  const auto object = trimmed(*header, " \t\r\n");
  return object.starts_with('{') && object.ends_with('}');
}

std::string_view describe(JwtFault fault) noexcept {
  switch (fault) {
    case JwtFault::malformed:
      return "The bearer token is not a signed JWT of a form that is accepted here.";
    case JwtFault::algorithm:
      return "The bearer token is signed by another algorithm than the one that is accepted here.";
    case JwtFault::unknown_key:
      return "The bearer token names a key that is not known here.";
    case JwtFault::signature:
      return "The bearer token's signature is wrong.";
    case JwtFault::expired:
      return "The bearer token has expired, or does not say when it does.";
    case JwtFault::not_yet_valid:
      return "The bearer token is not valid yet.";
    case JwtFault::issuer:
      return "The bearer token was issued by another issuer.";
    case JwtFault::audience:
      return "The bearer token is for another audience.";
    case JwtFault::claim:
      return "The bearer token lacks the claim that names the scope.";
  }
  return {};
}

std::expected<std::shared_ptr<const JwtVerifier>, std::string> JwtVerifier::load(
    const JwtRules& rules) {
  const auto algorithm = find_jwt_algorithm(rules.algorithm);
  if (!algorithm) {
    return std::unexpected("\"" + rules.algorithm +
                           "\" is no algorithm; write RS256, PS256, ES256, EdDSA or HS256");
  }
  const bool one_key = rules.jwks_file.empty();
  const std::string& path = one_key ? rules.key_file : rules.jwks_file;
  const auto text = read_small_file(path);
  if (!text) return std::unexpected(text.error());
  auto keys = one_key ? KeySet::from_key(*algorithm, *text) : KeySet::from_jwks(*algorithm, *text);
  if (!keys) return std::unexpected(path + ": " + keys.error());
  return std::make_shared<const Verifier>(rules, *algorithm, std::move(*keys));
}

}  // namespace idem::gateway
