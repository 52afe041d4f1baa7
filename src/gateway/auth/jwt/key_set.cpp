#include "gateway/auth/jwt/key_set.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::gateway {
namespace {

using ReadKeySet = std::expected<KeySet, std::string>;

std::string_view key_type_of(JwtAlgorithm algorithm) noexcept {
  switch (algorithm) {
    case JwtAlgorithm::hs256:
      return "oct";
    case JwtAlgorithm::rs256:
    case JwtAlgorithm::ps256:
      return "RSA";
    case JwtAlgorithm::es256:
      return "EC";
    case JwtAlgorithm::eddsa:
      return "OKP";
  }
  return {};
}

/// RFC 7517 §4.1 to §4.4. A member that the key does not have excludes nothing.
bool is_meant_for(JwtAlgorithm algorithm, const JsonObject& jwk) {
  if (jwk.text("kty") != key_type_of(algorithm)) return false;
  if (jwk.has("alg") && jwk.text("alg") != name_of(algorithm)) return false;
  if (jwk.has("use") && jwk.text("use") != "sig") return false;
  if (jwk.has("key_ops")) {
    const auto operations = jwk.texts("key_ops");
    if (!operations || std::ranges::find(*operations, "verify") == operations->end()) return false;
  }
  // A set may hold keys of one type on several curves.
  if (algorithm == JwtAlgorithm::es256) return jwk.text("crv") == "P-256";
  if (algorithm == JwtAlgorithm::eddsa) return jwk.text("crv") == "Ed25519";
  return true;
}

}  // namespace

ReadKeySet KeySet::from_key(JwtAlgorithm algorithm, std::string_view text) {
  auto key = SignatureKey::from_file_text(algorithm, text);
  if (!key) return std::unexpected(std::move(key.error()));
  KeySet set;
  set.keys_.push_back({std::nullopt, std::move(*key)});
  return set;
}

ReadKeySet KeySet::from_jwks(JwtAlgorithm algorithm, std::string_view text) {
  const auto document = JsonObject::parse(text);
  const auto members = document ? document->objects("keys") : std::nullopt;
  if (!members) return std::unexpected("it is no JWK Set: {\"keys\": [...]}");
  KeySet set;
  set.by_kid_ = true;
  for (const auto& jwk : *members) {
    if (!is_meant_for(algorithm, jwk)) continue;
    auto kid = jwk.text("kid");
    const std::string shown = kid ? " \"" + *kid + "\"" : " without a kid";
    if (jwk.has("kid") && !kid) return std::unexpected("a key's kid is no string");
    for (const auto& other : set.keys_) {
      if (kid && other.kid == kid) return std::unexpected("two keys have the kid" + shown);
    }
    auto key = SignatureKey::from_jwk(algorithm, jwk);
    if (!key) return std::unexpected("the key" + shown + ": " + key.error());
    set.keys_.push_back({std::move(kid), std::move(*key)});
    if (set.keys_.size() > limits::jwt_keys_max) {
      return std::unexpected("it holds more than " + std::to_string(limits::jwt_keys_max) +
                             " keys");
    }
  }
  if (set.keys_.empty()) {
    return std::unexpected("no key in it is meant for " + std::string(name_of(algorithm)));
  }
  return set;
}

const SignatureKey* KeySet::find(const std::optional<std::string>& kid) const noexcept {
  if (!by_kid_) return &keys_.front().key;
  if (!kid) return keys_.size() == 1 ? &keys_.front().key : nullptr;
  for (const auto& named : keys_) {
    if (named.kid == kid) return &named.key;
  }
  return nullptr;
}

}  // namespace idem::gateway
