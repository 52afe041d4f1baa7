#pragma once

#include <idem/fingerprint.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_mac_ctx_st;
struct evp_md_ctx_st;

/// Digests over length-framed parts: each part follows its length (64 bits, little endian), so that
/// two different lists of parts never give the same bytes.
namespace idem {

using Digest = std::array<std::uint8_t, 32>;

std::string_view view_of(const Digest& digest) noexcept;

/// The framed parts as bytes.
class Frames {
 public:
  explicit Frames(std::size_t bytes_expected = 0) { bytes_.reserve(bytes_expected); }

  void add(std::string_view part);
  void add_number(std::uint64_t number);
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

/// SHA-256 of the framed parts, without copying them.
class FramedDigest {
 public:
  FramedDigest();

  void add(std::string_view part);
  void add_number(std::uint64_t number);
  /// Adds bytes without their length: if nothing else is added, finish() is their plain SHA-256.
  void add_bytes(std::string_view bytes);
  Digest finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

Digest sha256(std::string_view bytes);

/// RFC 2104, under a key of any length. None: OpenSSL refuses, as it does where its configuration
/// forbids the key or the algorithm. So nothing that is offered can equal a MAC that was not made.
std::optional<Digest> hmac_sha256(std::string_view key, std::string_view message);

struct FreeMacContext {
  void operator()(evp_mac_ctx_st* context) const noexcept;
};

/// SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012) of framed parts, under this object's
/// own random key: names things in this process's memory, so that no client can make two names
/// collide. Copies no part; allocates only when it is made.
class MemoryName {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  MemoryName();

  void begin();
  void add(std::string_view part);
  void add_number(std::uint64_t number);
  Bytes finish();

 private:
  Bytes key_{};
  std::unique_ptr<evp_mac_ctx_st, FreeMacContext> context_;
};

/// HMAC-SHA-256 under the subkey HMAC(secret, label): one secret serves several purposes, and the
/// digests of two purposes never match. A thread keeps one object per purpose, because fetching and
/// keying cost more than the digest of a typical request. `label` is static text.
class KeyedDigest {
 public:
  explicit KeyedDigest(std::string_view label);

  Digest of(const Secret& secret, std::string_view message);

 private:
  void set_key(const std::array<std::uint8_t, 32>& key);
  Digest finish(std::string_view message);

  std::string_view label_;
  std::unique_ptr<evp_mac_ctx_st, FreeMacContext> context_;
  Secret secret_{};
  bool keyed_ = false;
};

}  // namespace idem
