#include <idem/fingerprint.hpp>

#include <idem/assert.hpp>
#include <idem/json.hpp>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <memory>

namespace idem {
namespace {

using Digest = std::array<std::uint8_t, 32>;

struct FreeContext {
  void operator()(EVP_MAC_CTX* context) const noexcept { EVP_MAC_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

const unsigned char* bytes_of(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Parts one behind the other, each after its length (64 bits, little endian): no two different
// lists of parts give the same bytes, whatever the parts hold.
class Frames {
 public:
  explicit Frames(std::size_t bytes_expected) { bytes_.reserve(bytes_expected); }

  void add(std::string_view part) {
    add_number(part.size());
    bytes_ += part;
  }
  void add_number(std::uint64_t number) {
    char little_endian[8];
    for (char& byte : little_endian) {
      byte = static_cast<char>(number & 0xFF);
      number >>= 8;
    }
    bytes_.append(little_endian, sizeof little_endian);
  }
  std::string_view bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

// HMAC-SHA-256 under the subkey HMAC(secret, label): one secret serves several purposes, and a
// digest made for one never stands for another. A thread keeps one per purpose, because fetching
// and keying cost more than the digest of a typical request.
class KeyedDigest {
 public:
  explicit KeyedDigest(std::string_view label) : label_(label) {
    // Fetched once per process and never given back; safe to use from every thread.
    static EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
    IDEM_ASSERT(hmac != nullptr);
    context_.reset(EVP_MAC_CTX_new(hmac));
    IDEM_ASSERT(context_ != nullptr);
  }

  Digest of(const Secret& secret, std::string_view message) {
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

 private:
  void set_key(const std::array<std::uint8_t, 32>& key) {
    char sha256[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0),
        OSSL_PARAM_construct_end()};
    IDEM_ASSERT(EVP_MAC_init(context_.get(), key.data(), key.size(), parameters) == 1);
  }

  Digest finish(std::string_view message) {
    Digest digest;
    std::size_t size = 0;
    IDEM_ASSERT(EVP_MAC_update(context_.get(), bytes_of(message), message.size()) == 1);
    IDEM_ASSERT(EVP_MAC_final(context_.get(), digest.data(), &size, digest.size()) == 1);
    IDEM_ASSERT(size == digest.size());
    return digest;
  }

  std::string_view label_;
  std::unique_ptr<EVP_MAC_CTX, FreeContext> context_;
  Secret secret_{};
  bool keyed_ = false;
};

Digest sha256(std::string_view bytes) {
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  Digest digest;
  unsigned int size = 0;
  IDEM_ASSERT(algorithm != nullptr && context != nullptr);
  IDEM_ASSERT(EVP_DigestInit_ex2(context.get(), algorithm, nullptr) == 1);
  IDEM_ASSERT(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  IDEM_ASSERT(EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1);
  IDEM_ASSERT(size == digest.size());
  return digest;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// `type/subtype` of a Content-Type, in lower case (RFC 9110 §8.3.1).
std::string media_type(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  type.remove_prefix(std::min(type.find_first_not_of(" \t"), type.size()));
  return lower_case(type.substr(0, type.find_last_not_of(" \t") + 1));
}

bool is_json(std::string_view media) noexcept {
  return media == "application/json" || media.ends_with("+json");
}

std::string_view view_of(const Digest& digest) noexcept {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// The tag and the digest of the body's form. The tag keeps a raw body from passing for a canonical
// one.
void add_body(Frames& frames, std::string_view media, std::string_view body) {
  if (is_json(media)) {
    if (const auto form = fingerprint_form(body)) {
      frames.add("json");
      frames.add(view_of(sha256(*form)));
      return;
    }
  }
  frames.add("raw");
  frames.add(view_of(sha256(body)));
}

}  // namespace

Fingerprint fingerprint(const Secret& secret, const FingerprintParts& parts) {
  IDEM_ASSERT(parts.chosen_headers.size() % 2 == 0);
  const std::string media = media_type(parts.content_type);
  Frames frames(256 + parts.target.size());
  frames.add_number(fingerprint_version);
  frames.add(parts.method);
  frames.add(parts.target);
  frames.add(media);
  frames.add_number(parts.chosen_headers.size());
  for (std::size_t i = 0; i < parts.chosen_headers.size(); i += 2) {
    frames.add(lower_case(parts.chosen_headers[i]));
    frames.add(parts.chosen_headers[i + 1]);
  }
  add_body(frames, media, parts.body);

  thread_local KeyedDigest digest("idem fingerprint");
  return {.version = fingerprint_version, .digest = digest.of(secret, frames.bytes())};
}

RecordId record_id(const Secret& secret, std::string_view scope, std::string_view operation,
                   std::string_view key) {
  Frames frames(24 + scope.size() + operation.size() + key.size());
  frames.add(scope);
  frames.add(operation);
  frames.add(key);

  thread_local KeyedDigest digest("idem record id");
  const Digest full = digest.of(secret, frames.bytes());
  RecordId id;
  std::copy_n(full.begin(), id.bytes.size(), id.bytes.begin());
  return id;
}

std::string credential_digest(const Secret& secret, std::string_view credential) {
  thread_local KeyedDigest digest("idem credential");
  return to_hex(digest.of(secret, credential));
}

void random_bytes(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const auto part = out.first(std::min<std::size_t>(out.size(), INT_MAX));
    IDEM_ASSERT(RAND_bytes(part.data(), static_cast<int>(part.size())) == 1);
    out = out.subspan(part.size());
  }
}

namespace {

// Counts the forks that this process came out of: a child must not go on with what its parent drew,
// because two attempts with one token would each take the other's reservation for its own.
std::atomic<unsigned> forks{0};

void notice_forks() {
  static const int code =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  IDEM_ASSERT(code == 0);
}

// A draw costs far more than its bytes, so they are drawn for many tokens at once.
struct TokenBlock {
  std::array<std::uint8_t, 64 * sizeof(Token)> bytes;
  std::size_t used = sizeof bytes;
  unsigned drawn_after = 0;
};

}  // namespace

Token random_token() {
  notice_forks();
  thread_local TokenBlock block;
  const unsigned now = forks.load(std::memory_order_relaxed);
  if (block.used == block.bytes.size() || block.drawn_after != now) {
    random_bytes(block.bytes);
    block.used = 0;
    block.drawn_after = now;
  }
  Token token;
  std::copy_n(block.bytes.begin() + block.used, token.bytes.size(), token.bytes.begin());
  block.used += token.bytes.size();
  return token;
}

}  // namespace idem
