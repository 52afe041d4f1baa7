#include "support/token_maker.hpp"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

#include <array>
#include <cstdlib>

namespace idem::test {
namespace {

using Text = std::string_view;

const unsigned char* bytes_of(Text text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

void must_work(bool done) {
  if (!done) std::abort();
}

std::string number(EVP_PKEY* key, const char* name, int width = 0) {
  BIGNUM* value = nullptr;
  must_work(EVP_PKEY_get_bn_param(key, name, &value) == 1);
  const int size = width > 0 ? width : BN_num_bytes(value);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  must_work(BN_bn2binpad(value, reinterpret_cast<unsigned char*>(bytes.data()), size) == size);
  BN_free(value);
  return bytes;
}

/// An ECDSA signature as the two numbers side by side (RFC 7518 §3.4).
std::string pair_of(const std::string& der) {
  const auto* at = bytes_of(der);
  ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
  must_work(signature != nullptr);
  std::string pair(64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(pair.data());
  must_work(BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, 32) == 32);
  must_work(BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + 32, 32) == 32);
  ECDSA_SIG_free(signature);
  return pair;
}

}  // namespace

std::string base64url(Text bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), bytes_of(bytes),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (out.ends_with('=')) out.pop_back();
  return out;
}

std::string hmac_sha256(Text secret, Text text) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes_of(text), text.size(),
       digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

TokenMaker::TokenMaker(std::string algorithm, unsigned bits) : algorithm_(std::move(algorithm)) {
  EVP_PKEY* key = nullptr;
  if (algorithm_ == "HS256") {
    secret_.resize(48);
    must_work(RAND_bytes(reinterpret_cast<unsigned char*>(secret_.data()), 48) == 1);
    secret_ = base64url(secret_);
    return;
  }
  if (algorithm_ == "ES256") key = EVP_EC_gen("P-256");
  if (algorithm_ == "EdDSA") key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  if (key == nullptr) key = EVP_RSA_gen(bits);
  must_work(key != nullptr);
  key_ = std::shared_ptr<EVP_PKEY>(key, &EVP_PKEY_free);
}

std::string TokenMaker::key_text() const {
  if (!key_) return secret_;
  BIO* out = BIO_new(BIO_s_mem());
  must_work(PEM_write_bio_PUBKEY(out, key_.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(out);
  return text;
}

std::string TokenMaker::jwk(Text more) const {
  std::string members;
  if (!key_) {
    members = R"("kty":"oct","k":")" + base64url(secret_) + '"';
  } else if (algorithm_ == "ES256") {
    members = R"("kty":"EC","crv":"P-256","x":")" +
              base64url(number(key_.get(), OSSL_PKEY_PARAM_EC_PUB_X, 32)) + R"(","y":")" +
              base64url(number(key_.get(), OSSL_PKEY_PARAM_EC_PUB_Y, 32)) + '"';
  } else if (algorithm_ == "EdDSA") {
    std::array<unsigned char, 32> raw{};
    std::size_t size = raw.size();
    must_work(EVP_PKEY_get_raw_public_key(key_.get(), raw.data(), &size) == 1);
    members = R"("kty":"OKP","crv":"Ed25519","x":")" +
              base64url({reinterpret_cast<const char*>(raw.data()), size}) + '"';
  } else {
    members = R"("kty":"RSA","n":")" + base64url(number(key_.get(), OSSL_PKEY_PARAM_RSA_N)) +
              R"(","e":")" + base64url(number(key_.get(), OSSL_PKEY_PARAM_RSA_E)) + '"';
  }
  if (!more.empty()) members += ',' + std::string(more);
  return '{' + members + '}';
}

std::string TokenMaker::signature(Text text) const {
  if (!key_) return hmac_sha256(secret_, text);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_PKEY_CTX* options = nullptr;
  const EVP_MD* digest = algorithm_ == "EdDSA" ? nullptr : EVP_sha256();
  must_work(EVP_DigestSignInit(context, &options, digest, nullptr, key_.get()) == 1);
  if (algorithm_ == "PS256") {
    must_work(EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1);
    must_work(EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1);
  }
  std::size_t size = 0;
  must_work(EVP_DigestSign(context, nullptr, &size, bytes_of(text), text.size()) == 1);
  std::string out(size, '\0');
  must_work(EVP_DigestSign(context, reinterpret_cast<unsigned char*>(out.data()), &size,
                           bytes_of(text), text.size()) == 1);
  out.resize(size);
  EVP_MD_CTX_free(context);
  return algorithm_ == "ES256" ? pair_of(out) : out;
}

std::string TokenMaker::sign(Text header, Text payload) const {
  const std::string text = base64url(header) + '.' + base64url(payload);
  return text + '.' + base64url(signature(text));
}

std::string TokenMaker::token(Text payload, Text kid) const {
  std::string header = R"({"typ":"JWT","alg":")" + algorithm_ + '"';
  if (!kid.empty()) header += R"(,"kid":")" + std::string(kid) + '"';
  return sign(header + '}', payload);
}

}  // namespace idem::test
