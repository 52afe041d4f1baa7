#include "core/bytes/envelope.hpp"

#include "core/bytes/digests.hpp"
#include "core/bytes/unsigned_bytes.hpp"

#include <idem/assert.hpp>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/modes.h>

#include <algorithm>
#include <memory>

namespace idem {
namespace {

constexpr std::size_t wrap_nonce_bytes = 12;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

/// A thread keeps one of each, without its key: making one costs more than a typical text.
class BorrowedContext {
 public:
  explicit BorrowedContext(const Context& context) : context_(context.get()) {
    IDEM_ASSERT(context_ != nullptr);
  }
  ~BorrowedContext() { EVP_CIPHER_CTX_reset(context_); }
  BorrowedContext(const BorrowedContext&) = delete;
  BorrowedContext& operator=(const BorrowedContext&) = delete;
  EVP_CIPHER_CTX* get() const noexcept { return context_; }

 private:
  EVP_CIPHER_CTX* context_;
};

const EVP_CIPHER* gcm() {
  static EVP_CIPHER* const fetched = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  IDEM_ASSERT(fetched != nullptr);
  return fetched;
}
const EVP_CIPHER* one_block() {
  static EVP_CIPHER* const fetched = EVP_CIPHER_fetch(nullptr, "AES-256-ECB", nullptr);
  IDEM_ASSERT(fetched != nullptr);
  return fetched;
}

const Context& context_of_thread() {
  thread_local const Context context(EVP_CIPHER_CTX_new());
  return context;
}

Digest derived(std::string_view label, const Secret& secret) {
  return KeyedDigest(label).of(secret, {});
}

// OpenSSL's own cipher "AES-256-WRAP" runs AES without the processor's instructions, which takes
// five times as long; its Key Wrap with this block cipher does not.
void begin_wrap(EVP_CIPHER_CTX* context, const CipherKey& with, int encrypt) {
  const bool begun =
      EVP_CipherInit_ex2(context, one_block(), with.bytes.data(), nullptr, encrypt, nullptr) == 1 &&
      EVP_CIPHER_CTX_set_padding(context, 0) == 1;
  IDEM_ASSERT(begun);
}

/// A block128_f of OpenSSL; `context` is the EVP_CIPHER_CTX that begin_wrap() has begun.
void run_block(const unsigned char* in, unsigned char* out, const void* context) {
  constexpr int block_bytes = 16;
  int written = 0;
  auto* const begun = static_cast<EVP_CIPHER_CTX*>(const_cast<void*>(context));
  IDEM_ASSERT(EVP_CipherUpdate(begun, out, &written, in, block_bytes) == 1 &&
              written == block_bytes);
}

void begin_gcm(EVP_CIPHER_CTX* context, const CipherKey& key, std::uint8_t part,
               std::string_view bound_to, int encrypt) {
  std::array<unsigned char, wrap_nonce_bytes> nonce{};
  nonce.back() = part;
  int length = 0;
  const bool begun =
      EVP_CipherInit_ex2(context, gcm(), key.bytes.data(), nonce.data(), encrypt, nullptr) == 1 &&
      EVP_CipherUpdate(context, nullptr, &length, unsigned_bytes(bound_to),
                       static_cast<int>(bound_to.size())) == 1;
  IDEM_ASSERT(begun);
}

/// Whole, or in pieces where a length does not fit into an int.
bool update_in_place(EVP_CIPHER_CTX* context, std::string& text) {
  constexpr std::size_t piece_max = std::size_t{1} << 30;
  for (std::size_t at = 0; at < text.size(); at += piece_max) {
    const auto size = static_cast<int>(std::min(piece_max, text.size() - at));
    int written = 0;
    unsigned char* const place = unsigned_bytes(text.data() + at);
    if (EVP_CipherUpdate(context, place, &written, place, size) != 1 || written != size) {
      return false;
    }
  }
  return true;
}

}  // namespace

CipherKey::~CipherKey() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

CipherKey random_cipher_key() {
  CipherKey key;
  random_bytes(key.bytes);
  return key;
}

CipherKey wrapping_key(const Secret& secret) {
  CipherKey key;
  key.bytes = derived("idem encryption key", secret);
  return key;
}

KeyName wrapping_key_name(const Secret& secret) {
  const Digest digest = derived("idem encryption key name", secret);
  KeyName name;
  std::copy_n(digest.begin(), name.size(), name.begin());
  return name;
}

std::string wrap_key(const CipherKey& with, const CipherKey& key) {
  const BorrowedContext context(context_of_thread());
  begin_wrap(context.get(), with, 1);
  std::string wrapped(wrapped_key_bytes, '\0');
  const std::size_t written =
      CRYPTO_128_wrap(context.get(), nullptr, unsigned_bytes(wrapped.data()), key.bytes.data(),
                      key.bytes.size(), &run_block);
  IDEM_ASSERT(written == wrapped_key_bytes);
  return wrapped;
}

std::optional<CipherKey> unwrap_key(const CipherKey& with, std::string_view wrapped) {
  if (wrapped.size() != wrapped_key_bytes) return std::nullopt;
  const BorrowedContext context(context_of_thread());
  begin_wrap(context.get(), with, 0);
  std::optional<CipherKey> key(std::in_place);
  const std::size_t written =
      CRYPTO_128_unwrap(context.get(), nullptr, key->bytes.data(), unsigned_bytes(wrapped),
                        wrapped.size(), &run_block);
  if (written != key->bytes.size()) key.reset();
  return key;
}

CipherTag encrypt_in_place(const CipherKey& key, std::uint8_t part, std::string_view bound_to,
                           std::string& text) {
  const BorrowedContext context(context_of_thread());
  begin_gcm(context.get(), key, part, bound_to, 1);
  CipherTag tag;
  unsigned char none = 0;
  int rest = 0;
  const bool done =
      update_in_place(context.get(), text) &&
      EVP_CipherFinal_ex(context.get(), &none, &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, cipher_tag_bytes, tag.data()) == 1;
  IDEM_ASSERT(done);
  return tag;
}

bool decrypt_in_place(const CipherKey& key, std::uint8_t part, std::string_view bound_to,
                      const CipherTag& tag, std::string& text) {
  const BorrowedContext context(context_of_thread());
  begin_gcm(context.get(), key, part, bound_to, 0);
  CipherTag expected = tag;
  unsigned char none = 0;
  int rest = 0;
  return update_in_place(context.get(), text) &&
         EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, cipher_tag_bytes,
                             expected.data()) == 1 &&
         EVP_CipherFinal_ex(context.get(), &none, &rest) == 1;
}

}  // namespace idem
