#pragma once

#include "gateway/auth/jwt/claims.hpp"

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_pkey_st;

/// The only user of OpenSSL's signatures.
namespace idem::gateway {

/// RFC 7518 §3.1, RFC 8037 §3.1 (Ed25519 only). `none` is not among them.
enum class JwtAlgorithm : std::uint8_t { hs256, rs256, ps256, es256, eddsa };
std::optional<JwtAlgorithm> find_jwt_algorithm(std::string_view name) noexcept;
std::string_view name_of(JwtAlgorithm algorithm) noexcept;

/// A key that verifies by one algorithm and no other. Its kind is checked when it is read, so that
/// a public key never becomes an HMAC's secret. Never changes; any thread.
class SignatureKey {
 public:
  /// PEM of a public key (`-----BEGIN PUBLIC KEY-----`); for HS256 the secret's own bytes, without
  /// the line end behind them. The error says what is wrong.
  static std::expected<SignatureKey, std::string> from_file_text(JwtAlgorithm algorithm,
                                                                 std::string_view text);
  /// A JWK (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2). The caller checks whether
  /// it is meant for this algorithm.
  static std::expected<SignatureKey, std::string> from_jwk(JwtAlgorithm algorithm,
                                                           const JsonObject& jwk);

  bool verifies(std::string_view signed_text, std::string_view signature) const;

 private:
  using Key = std::shared_ptr<evp_pkey_st>;
  SignatureKey(JwtAlgorithm algorithm, Key key, std::string secret)
      : algorithm_(algorithm), key_(std::move(key)), secret_(std::move(secret)) {}
  static std::expected<SignatureKey, std::string> checked(JwtAlgorithm algorithm, Key key);
  static std::expected<SignatureKey, std::string> of_secret(std::string secret);

  JwtAlgorithm algorithm_;
  Key key_;             ///< Empty for HS256.
  std::string secret_;  ///< HS256 alone.
};

}  // namespace idem::gateway
