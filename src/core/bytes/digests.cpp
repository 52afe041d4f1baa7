#include "core/bytes/digests.hpp"

#include "core/bytes/unsigned_bytes.hpp"

#include <idem/assert.hpp>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace idem {
namespace {

using Length = std::array<char, 8>;

Length little_endian_bytes(std::uint64_t number) noexcept {
  Length bytes;
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xFF);
    number >>= 8;
  }
  return bytes;
}

// Fetched once per process and never given back; safe to use from every thread.
const EVP_MD* sha256_algorithm() {
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  IDEM_ASSERT(algorithm != nullptr);
  return algorithm;
}

Digest finish_digest(EVP_MD_CTX* context) {
  Digest digest;
  unsigned int size = 0;
  IDEM_ASSERT(EVP_DigestFinal_ex(context, digest.data(), &size) == 1);
  IDEM_ASSERT(size == digest.size());
  return digest;
}

}  // namespace

std::string_view view_of(const Digest& digest) noexcept {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void Frames::add(std::string_view part) {
  add_number(part.size());
  bytes_ += part;
}

void Frames::add_number(std::uint64_t number) {
  const Length bytes = little_endian_bytes(number);
  bytes_.append(bytes.data(), bytes.size());
}

void FramedDigest::Free::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}

FramedDigest::FramedDigest() : context_(EVP_MD_CTX_new()) {
  IDEM_ASSERT(context_ != nullptr);
  IDEM_ASSERT(EVP_DigestInit_ex2(context_.get(), sha256_algorithm(), nullptr) == 1);
}

void FramedDigest::add(std::string_view part) {
  add_number(part.size());
  add_bytes(part);
}

void FramedDigest::add_bytes(std::string_view bytes) {
  IDEM_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

void FramedDigest::add_number(std::uint64_t number) {
  const Length bytes = little_endian_bytes(number);
  IDEM_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Digest FramedDigest::finish() { return finish_digest(context_.get()); }

Digest sha256(std::string_view bytes) {
  struct Free {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  thread_local const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  IDEM_ASSERT(context != nullptr);
  IDEM_ASSERT(EVP_DigestInit_ex2(context.get(), sha256_algorithm(), nullptr) == 1);
  IDEM_ASSERT(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  return finish_digest(context.get());
}

std::optional<Digest> hmac_sha256(std::string_view key, std::string_view message) {
  Digest digest;
  unsigned int size = 0;
  const bool is_made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), unsigned_bytes(message),
           message.size(), digest.data(), &size) != nullptr;
  return is_made && size == digest.size() ? std::optional(digest) : std::nullopt;
}

void FreeMacContext::operator()(evp_mac_ctx_st* context) const noexcept {
  EVP_MAC_CTX_free(context);
}

MemoryName::MemoryName() {
  static EVP_MAC* const siphash = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_SIPHASH, nullptr);
  IDEM_ASSERT(siphash != nullptr);
  context_.reset(EVP_MAC_CTX_new(siphash));
  IDEM_ASSERT(context_ != nullptr);
  random_bytes(key_);
}

void MemoryName::begin() {
  IDEM_ASSERT(EVP_MAC_init(context_.get(), key_.data(), key_.size(), nullptr) == 1);
}

void MemoryName::add(std::string_view part) {
  add_number(part.size());
  IDEM_ASSERT(EVP_MAC_update(context_.get(), unsigned_bytes(part), part.size()) == 1);
}

void MemoryName::add_number(std::uint64_t number) {
  const Length bytes = little_endian_bytes(number);
  const std::string_view text(bytes.data(), bytes.size());
  IDEM_ASSERT(EVP_MAC_update(context_.get(), unsigned_bytes(text), text.size()) == 1);
}

MemoryName::Bytes MemoryName::finish() {
  Bytes bytes;
  std::size_t size = 0;
  IDEM_ASSERT(EVP_MAC_final(context_.get(), bytes.data(), &size, bytes.size()) == 1);
  IDEM_ASSERT(size == bytes.size());
  return bytes;
}

KeyedDigest::KeyedDigest(std::string_view label) : label_(label) {
  // Fetched once per process and never given back; safe to use from every thread.
  static EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
  IDEM_ASSERT(hmac != nullptr);
  context_.reset(EVP_MAC_CTX_new(hmac));
  IDEM_ASSERT(context_ != nullptr);
}

Digest KeyedDigest::of(const Secret& secret, std::string_view message) {
  if (!keyed_ || CRYPTO_memcmp(secret.data(), secret_.data(), secret.size()) != 0) {
    set_key(secret);
    const Digest subkey = finish(label_);
    set_key(subkey);
    secret_ = secret;
    keyed_ = true;
  }
  IDEM_ASSERT(EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1);  // the same key again
  return finish(message);
}

void KeyedDigest::set_key(const std::array<std::uint8_t, 32>& key) {
  char sha256[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0),
      OSSL_PARAM_construct_end()};
  IDEM_ASSERT(EVP_MAC_init(context_.get(), key.data(), key.size(), parameters) == 1);
}

Digest KeyedDigest::finish(std::string_view message) {
  Digest digest;
  std::size_t size = 0;
  IDEM_ASSERT(EVP_MAC_update(context_.get(), unsigned_bytes(message), message.size()) == 1);
  IDEM_ASSERT(EVP_MAC_final(context_.get(), digest.data(), &size, digest.size()) == 1);
  IDEM_ASSERT(size == digest.size());
  return digest;
}

}  // namespace idem
