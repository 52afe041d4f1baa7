#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_pkey_st;

namespace idem::test {

/// RFC 4648 §5 without padding.
std::string base64url(std::string_view bytes);

/// An issuer's key and the tokens that it signs, made by OpenSSL alone: a test that shares the
/// product's code shares its mistakes.
class TokenMaker {
 public:
  /// "RS256", "PS256", "ES256", "EdDSA" or "HS256"; a fresh key each time. `bits`: of RSA.
  explicit TokenMaker(std::string algorithm, unsigned bits = 2048);

  /// PEM of the public key; for HS256 the secret.
  std::string key_text() const;
  /// Its JWK; `more` are further members, such as `"kid":"a"`.
  std::string jwk(std::string_view more = {}) const;
  /// Signed as this key's algorithm says, whatever the header claims.
  std::string sign(std::string_view header, std::string_view payload) const;
  /// With the header that a token of this key has, and its `kid` unless empty.
  std::string token(std::string_view payload, std::string_view kid = {}) const;

 private:
  std::string signature(std::string_view text) const;

  std::string algorithm_;
  std::shared_ptr<evp_pkey_st> key_;
  std::string secret_;
};

/// HMAC-SHA-256 of `text` under any bytes.
std::string hmac_sha256(std::string_view secret, std::string_view text);

}  // namespace idem::test
