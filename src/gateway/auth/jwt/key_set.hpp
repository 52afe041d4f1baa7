#pragma once

#include "gateway/auth/jwt/signature_key.hpp"

#include <vector>

namespace idem::gateway {

/// The keys of one issuer for one algorithm.
class KeySet {
 public:
  /// One key, whatever a token's `kid` says.
  static std::expected<KeySet, std::string> from_key(JwtAlgorithm algorithm, std::string_view text);
  /// A JWK Set. Keys for another algorithm or use are passed over; one that is meant for this and
  /// cannot be read, two with one `kid`, and a set without any are errors.
  static std::expected<KeySet, std::string> from_jwks(JwtAlgorithm algorithm,
                                                      std::string_view text);

  /// The key that verifies a token with this `kid`. Without one: the only key there is, or none.
  const SignatureKey* find(const std::optional<std::string>& kid) const noexcept;

 private:
  struct Named {
    std::optional<std::string> kid;
    SignatureKey key;
  };
  std::vector<Named> keys_;
  bool by_kid_ = false;
};

}  // namespace idem::gateway
