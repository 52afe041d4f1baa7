#include "core/bytes/seal.hpp"

#include "core/bytes/digests.hpp"
#include "core/bytes/unsigned_bytes.hpp"

#include <idem/assert.hpp>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>

namespace idem {
namespace {

constexpr char version = 1;
constexpr std::size_t name_bytes = 8;
constexpr std::size_t salt_bytes = 16;
constexpr std::size_t nonce_bytes = 12;
constexpr std::size_t tag_bytes = 16;
constexpr std::size_t seal_head_bytes = 1 + name_bytes + salt_bytes + nonce_bytes;

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

std::string name_of(const Secret& secret) {
  thread_local KeyedDigest names("idem seal name");
  return std::string(view_of(names.of(secret, {})).substr(0, name_bytes));
}

/// Its destructor wipes it.
struct MessageKey {
  Digest bytes;
  MessageKey(const Secret& secret, std::string_view salt) {
    thread_local KeyedDigest keys("idem seal key");
    bytes = keys.of(secret, salt);
  }
  ~MessageKey() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
  MessageKey(const MessageKey&) = delete;
  MessageKey& operator=(const MessageKey&) = delete;
};

Cipher begin(const MessageKey& key, std::string_view nonce, std::string_view bound_to,
             int encrypt) {
  Cipher cipher(EVP_CIPHER_CTX_new());
  int length = 0;
  const bool begun = cipher != nullptr &&
                     EVP_CipherInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.bytes.data(),
                                       unsigned_bytes(nonce), encrypt) == 1 &&
                     EVP_CipherUpdate(cipher.get(), nullptr, &length, unsigned_bytes(bound_to),
                                      static_cast<int>(bound_to.size())) == 1;
  IDEM_ASSERT(begun);
  return cipher;
}

}  // namespace

std::string seal(const Secret& secret, std::string_view plain, std::string_view bound_to) {
  std::string sealed(1, version);
  sealed += name_of(secret);
  sealed.resize(seal_head_bytes + plain.size() + tag_bytes);
  const std::span random(unsigned_bytes(sealed.data() + 1 + name_bytes), salt_bytes + nonce_bytes);
  random_bytes(random);
  const std::string_view head = std::string_view(sealed).substr(0, seal_head_bytes);
  const MessageKey key(secret, head.substr(1 + name_bytes, salt_bytes));
  const Cipher cipher = begin(key, head.substr(1 + name_bytes + salt_bytes), bound_to, 1);
  int written = 0;
  int rest = 0;
  unsigned char* const out = unsigned_bytes(sealed.data() + seal_head_bytes);
  const bool done =
      EVP_CipherUpdate(cipher.get(), out, &written, unsigned_bytes(plain),
                       static_cast<int>(plain.size())) == 1 &&
      EVP_CipherFinal_ex(cipher.get(), out + written, &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, tag_bytes, out + plain.size()) == 1;
  IDEM_ASSERT(done && static_cast<std::size_t>(written + rest) == plain.size());
  return sealed;
}

std::optional<std::string> unseal(std::span<const Secret> secrets, std::string_view sealed,
                                  std::string_view bound_to) {
  if (sealed.size() < seal_head_bytes + tag_bytes || sealed.front() != version) return std::nullopt;
  const auto secret = std::ranges::find_if(
      secrets, [&](const Secret& one) { return sealed.substr(1, name_bytes) == name_of(one); });
  if (secret == secrets.end()) return std::nullopt;
  const MessageKey key(*secret, sealed.substr(1 + name_bytes, salt_bytes));
  const auto nonce = sealed.substr(1 + name_bytes + salt_bytes, nonce_bytes);
  const Cipher cipher = begin(key, nonce, bound_to, 0);
  const auto text = sealed.substr(seal_head_bytes, sealed.size() - seal_head_bytes - tag_bytes);
  std::string tag(sealed.substr(sealed.size() - tag_bytes));
  std::string plain(text.size(), '\0');
  int written = 0;
  int rest = 0;
  const bool done =
      EVP_CipherUpdate(cipher.get(), unsigned_bytes(plain.data()), &written, unsigned_bytes(text),
                       static_cast<int>(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, tag_bytes, tag.data()) == 1 &&
      EVP_CipherFinal_ex(cipher.get(), unsigned_bytes(plain.data()) + written, &rest) == 1;
  if (!done) return std::nullopt;
  return plain;
}

}  // namespace idem
