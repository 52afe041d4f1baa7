#include "gateway/auth/jwt/signature_key.hpp"

#include "core/bytes/base64.hpp"
#include "core/bytes/digests.hpp"
#include "core/bytes/unsigned_bytes.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <array>

namespace idem::gateway {
namespace {

using ReadKey = std::expected<SignatureKey, std::string>;
using Number = std::unique_ptr<BIGNUM, decltype(&BN_free)>;

constexpr std::array<std::pair<std::string_view, JwtAlgorithm>, 5> algorithms{
    {{"HS256", JwtAlgorithm::hs256},
     {"RS256", JwtAlgorithm::rs256},
     {"PS256", JwtAlgorithm::ps256},
     {"ES256", JwtAlgorithm::es256},
     {"EdDSA", JwtAlgorithm::eddsa}}};

// P-256: two numbers of 32 bytes (RFC 7518 §3.4).
constexpr std::size_t es256_half = 32;

Number number_of(std::string_view bytes) {
  return {BN_bin2bn(unsigned_bytes(bytes), static_cast<int>(bytes.size()), nullptr), &BN_free};
}

std::shared_ptr<EVP_PKEY> owned(EVP_PKEY* key) {
  return key == nullptr ? nullptr : std::shared_ptr<EVP_PKEY>(key, &EVP_PKEY_free);
}

std::shared_ptr<EVP_PKEY> built(const char* type, OSSL_PARAM_BLD* builder) {
  const std::unique_ptr<OSSL_PARAM, decltype(&OSSL_PARAM_free)> parameters(
      OSSL_PARAM_BLD_to_param(builder), &OSSL_PARAM_free);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr), &EVP_PKEY_CTX_free);
  EVP_PKEY* key = nullptr;
  if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) != 1) return nullptr;
  EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get());
  return owned(key);
}

using Builder = std::unique_ptr<OSSL_PARAM_BLD, decltype(&OSSL_PARAM_BLD_free)>;

std::optional<std::string> octets(const JsonObject& jwk, std::string_view name) {
  const auto text = jwk.text(name);
  return text ? from_base64url(*text) : std::nullopt;
}

std::shared_ptr<EVP_PKEY> rsa_key(const JsonObject& jwk) {
  const auto modulus = octets(jwk, "n");
  const auto exponent = octets(jwk, "e");
  if (!modulus || !exponent || exponent->empty() || exponent->size() > 8) return nullptr;
  if (modulus->size() > static_cast<std::size_t>(limits::jwt_rsa_bits_max) / 8) return nullptr;
  const Number n = number_of(*modulus);
  const Number e = number_of(*exponent);
  const Builder builder(OSSL_PARAM_BLD_new(), &OSSL_PARAM_BLD_free);
  IDEM_ASSERT(n && e && builder);
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
  return built("RSA", builder.get());
}

std::shared_ptr<EVP_PKEY> p256_key(const JsonObject& jwk) {
  const auto x = octets(jwk, "x");
  const auto y = octets(jwk, "y");
  if (jwk.text("crv") != "P-256" || !x || !y) return nullptr;
  if (x->size() != es256_half || y->size() != es256_half) return nullptr;
  const std::string point = '\x04' + *x + *y;
  const Builder builder(OSSL_PARAM_BLD_new(), &OSSL_PARAM_BLD_free);
  IDEM_ASSERT(builder);
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                   point.size());
  return built("EC", builder.get());
}

std::shared_ptr<EVP_PKEY> ed25519_key(const JsonObject& jwk) {
  const auto x = octets(jwk, "x");
  if (jwk.text("crv") != "Ed25519" || !x || x->size() != 32) return nullptr;
  return owned(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, unsigned_bytes(*x), x->size()));
}

bool is_p256(EVP_PKEY* key) {
  std::array<char, 64> name{};
  std::size_t length = 0;
  return EVP_PKEY_get_group_name(key, name.data(), name.size(), &length) == 1 &&
         std::string_view(name.data(), length) == SN_X9_62_prime256v1;
}

/// The pair of numbers as the DER that OpenSSL verifies; empty where it is no pair.
std::string der_of_pair(std::string_view pair) {
  if (pair.size() != 2 * es256_half) return {};
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> signature(ECDSA_SIG_new(),
                                                                        &ECDSA_SIG_free);
  IDEM_ASSERT(signature != nullptr);
  Number r = number_of(pair.substr(0, es256_half));
  Number s = number_of(pair.substr(es256_half));
  IDEM_ASSERT(r && s);
  if (ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return {};
  static_cast<void>(r.release());  // set0 owns them now.
  static_cast<void>(s.release());
  unsigned char* der = nullptr;
  const int bytes = i2d_ECDSA_SIG(signature.get(), &der);
  if (bytes <= 0) return {};
  std::string out(reinterpret_cast<const char*>(der), static_cast<std::size_t>(bytes));
  OPENSSL_free(der);
  return out;
}

/// OpenSSL keeps failures in a queue of the thread, where a TLS session would find them and report
/// them as its own.
struct CleanErrors {
  CleanErrors() = default;
  CleanErrors(const CleanErrors&) = delete;
  CleanErrors& operator=(const CleanErrors&) = delete;
  ~CleanErrors() { ERR_clear_error(); }
};

/// The point lies on its curve, the modulus can be one.
bool is_sound(EVP_PKEY* key) {
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr), &EVP_PKEY_CTX_free);
  return context && EVP_PKEY_public_check(context.get()) == 1;
}

bool hmac_matches(std::string_view secret, std::string_view text, std::string_view signature) {
  const auto digest = hmac_sha256(secret, text);
  return digest && signature.size() == digest->size() &&
         CRYPTO_memcmp(digest->data(), signature.data(), digest->size()) == 0;
}

}  // namespace

std::optional<JwtAlgorithm> find_jwt_algorithm(std::string_view name) noexcept {
  for (const auto& [known, algorithm] : algorithms) {
    if (known == name) return algorithm;
  }
  return std::nullopt;
}

std::string_view name_of(JwtAlgorithm algorithm) noexcept {
  return algorithms[static_cast<std::size_t>(algorithm)].first;
}

ReadKey SignatureKey::checked(JwtAlgorithm algorithm, Key key) {
  if (!key) return std::unexpected("it is no public key that could be read");
  switch (algorithm) {
    case JwtAlgorithm::hs256:
      return std::unexpected("HS256 needs a secret, not a public key");
    case JwtAlgorithm::rs256:
    case JwtAlgorithm::ps256: {
      const bool rsa = EVP_PKEY_is_a(key.get(), "RSA") == 1 ||
                       (algorithm == JwtAlgorithm::ps256 && EVP_PKEY_is_a(key.get(), "RSA-PSS"));
      if (!rsa) return std::unexpected("it is no RSA key");
      const int bits = EVP_PKEY_get_bits(key.get());
      if (bits < limits::jwt_rsa_bits_min || bits > limits::jwt_rsa_bits_max) {
        return std::unexpected("an RSA key of " + std::to_string(bits) +
                               " bits; 2048 to 8192 are accepted");
      }
      break;
    }
    case JwtAlgorithm::es256:
      if (EVP_PKEY_is_a(key.get(), "EC") != 1 || !is_p256(key.get())) {
        return std::unexpected("it is no key on the curve P-256");
      }
      break;
    case JwtAlgorithm::eddsa:
      if (EVP_PKEY_is_a(key.get(), "ED25519") != 1) return std::unexpected("it is no Ed25519 key");
      break;
  }
  if (!is_sound(key.get())) return std::unexpected("its numbers are not a valid key");
  return SignatureKey(algorithm, std::move(key), {});
}

ReadKey SignatureKey::of_secret(std::string secret) {
  if (secret.size() < limits::jwt_secret_bytes_min) {
    return std::unexpected("a secret of HS256 has at least 32 bytes (RFC 7518 3.2)");
  }
  return SignatureKey(JwtAlgorithm::hs256, nullptr, std::move(secret));
}

ReadKey SignatureKey::from_file_text(JwtAlgorithm algorithm, std::string_view text) {
  if (algorithm == JwtAlgorithm::hs256) {
    // The best known forgery: a public key used as the secret.
    if (text.find("-----BEGIN") != std::string_view::npos) {
      return std::unexpected("it is a PEM file, and HS256 needs a secret");
    }
    if (text.find("\"kty\"") != text.npos || text.find("\"keys\"") != text.npos) {
      return std::unexpected("it is a JWK or a set of them; write it as the JWKS file");
    }
    if (text.ends_with('\n')) text.remove_suffix(1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    return of_secret(std::string(text));
  }
  const CleanErrors clean;
  const std::unique_ptr<BIO, decltype(&BIO_free)> source(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  IDEM_ASSERT(source != nullptr);
  auto key = owned(PEM_read_bio_PUBKEY(source.get(), nullptr, nullptr, nullptr));
  if (!key) {
    return std::unexpected(
        "it holds no \"-----BEGIN PUBLIC KEY-----\"; write the public key as "
        "`openssl pkey -pubout` does");
  }
  return checked(algorithm, std::move(key));
}

ReadKey SignatureKey::from_jwk(JwtAlgorithm algorithm, const JsonObject& jwk) {
  const CleanErrors clean;
  switch (algorithm) {
    case JwtAlgorithm::hs256: {
      auto secret = octets(jwk, "k");
      if (!secret) return std::unexpected("\"k\" is no base64url");
      return of_secret(std::move(*secret));
    }
    case JwtAlgorithm::rs256:
    case JwtAlgorithm::ps256:
      return checked(algorithm, rsa_key(jwk));
    case JwtAlgorithm::es256:
      return checked(algorithm, p256_key(jwk));
    case JwtAlgorithm::eddsa:
      return checked(algorithm, ed25519_key(jwk));
  }
  return std::unexpected("no such algorithm");
}

bool SignatureKey::verifies(std::string_view signed_text, std::string_view signature) const {
  const CleanErrors clean;
  if (algorithm_ == JwtAlgorithm::hs256) return hmac_matches(secret_, signed_text, signature);
  const bool pair = algorithm_ == JwtAlgorithm::es256;
  const std::string der = pair ? der_of_pair(signature) : std::string();
  if (pair) signature = der;
  if (signature.empty()) return false;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  IDEM_ASSERT(context != nullptr);
  const EVP_MD* digest = algorithm_ == JwtAlgorithm::eddsa ? nullptr : EVP_sha256();
  EVP_PKEY_CTX* options = nullptr;  // The context's own.
  if (EVP_DigestVerifyInit(context.get(), &options, digest, nullptr, key_.get()) != 1) return false;
  if (algorithm_ == JwtAlgorithm::ps256 &&
      (EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) != 1 ||
       EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) != 1)) {
    return false;
  }
  return EVP_DigestVerify(context.get(), unsigned_bytes(signature), signature.size(),
                          unsigned_bytes(signed_text), signed_text.size()) == 1;
}

}  // namespace idem::gateway
