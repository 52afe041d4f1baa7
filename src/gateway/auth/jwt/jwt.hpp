#pragma once

#include <idem/record.hpp>

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

/// Scope `jwt:CLAIM` (protocol.md §9): a signed token (RFC 7519 in RFC 7515's compact form) that
/// names its bearer. The verification trusts nothing that the token says about it: it follows RFC
/// 8725 throughout.
namespace idem::gateway {

struct JwtRules {
  std::string algorithm;   ///< HS256, RS256, PS256, ES256 or EdDSA; the only one that is accepted.
  std::string key_file;    ///< PEM of a public key; for HS256 the secret. One of the two files.
  std::string jwks_file;   ///< A JWK Set (RFC 7517 §5); the token's `kid` says which.
  std::string issuer;      ///< What `iss` must be, byte for byte.
  std::string audience{};  ///< What `aud` must be or hold. Empty: a token with an `aud` is refused.
  std::string claim;       ///< The top-level member that names the scope.
  Millis leeway{0};        ///< Between the issuer's clock and ours; 0 to limits::jwt_leeway_cap.
};

enum class JwtFault : std::uint8_t {
  malformed,  ///< Also: two members of one name, `crit`, a nested token, over
              ///< limits::jwt_bytes_max.
  algorithm,  ///< Not the configured one.
  unknown_key,
  signature,
  expired,  ///< Also: `exp` is absent.
  not_yet_valid,
  issuer,
  audience,
  claim,  ///< Absent, empty, no string, too long or with control characters.
};
/// A sentence for the client, without anything that is not in its own token.
std::string_view describe(JwtFault fault) noexcept;

/// Whether a bearer token is a JWS or JWE in compact form: its first part is a JSON object, however
/// that is spelled. Nothing is verified.
bool looks_like_jwt(std::string_view token);

struct JwtHolder {
  /// The claim's value, then the digest of the issuer: two issuers never share one. Injective.
  std::string scope;
  std::chrono::sys_time<Millis> expires_at;  ///< Leeway included.
};

/// Never changes; may be used from any thread.
class JwtVerifier {
 public:
  /// Reads the file. The error is a sentence that names it.
  static std::expected<std::shared_ptr<const JwtVerifier>, std::string> load(const JwtRules& rules);
  virtual ~JwtVerifier() = default;

  virtual std::expected<JwtHolder, JwtFault> verify(std::string_view token,
                                                    std::chrono::sys_time<Millis> now) const = 0;
  virtual const JwtRules& rules() const noexcept = 0;
};

}  // namespace idem::gateway
