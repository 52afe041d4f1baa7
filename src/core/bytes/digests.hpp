#pragma once

#include <idem/fingerprint.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_mac_ctx_st;
struct evp_md_ctx_st;

/// Digests over length-framed parts: each part goes in after its length (64 bits, little endian),
/// so that no two different lists of parts give the same bytes, whatever the parts hold.
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

/// SHA-256 of the framed parts, none of which is copied.
class FramedDigest {
 public:
  FramedDigest();

  void add(std::string_view part);
  void add_number(std::uint64_t number);
  /// The bytes without their length: with nothing else, the digest is that of all of them.
  void add_bytes(std::string_view bytes);
  Digest finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

Digest sha256(std::string_view bytes);

struct FreeMacContext {
  void operator()(evp_mac_ctx_st* context) const noexcept;
};

/// SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012) of framed parts, under a random key
/// that nobody else has and that goes with this object: a name for what lies in this process's
/// memory, which no client can make two things share. None of the parts is copied, and once it is
/// made nothing is allocated.
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

/// HMAC-SHA-256 under the subkey HMAC(secret, label): one secret serves several purposes, and a
/// digest made for one never stands for another. A thread keeps one per purpose, because fetching
/// and keying cost more than the digest of a typical request. `label` is static text.
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
