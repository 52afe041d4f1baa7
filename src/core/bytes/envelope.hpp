#pragma once

#include <idem/fingerprint.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Envelope encryption: a text is encrypted under a random key of its own (AES-256-GCM, NIST SP
/// 800-38D), and that key is wrapped by another one (AES-256 Key Wrap, RFC 3394 and NIST SP
/// 800-38F), so that a new wrapping key needs a new wrapping only, and the text stays as it is. Key
/// Wrap needs no nonce: one key may wrap any number of keys.
namespace idem {

/// A key of AES-256. Each copy wipes itself.
struct CipherKey {
  std::array<std::uint8_t, 32> bytes{};

  CipherKey() = default;
  CipherKey(const CipherKey&) = default;
  CipherKey& operator=(const CipherKey&) = default;
  ~CipherKey();
};

CipherKey random_cipher_key();

/// Names a wrapping key in a store, and says nothing about it.
using KeyName = std::array<std::uint8_t, 8>;

/// The wrapping key that a secret gives: HMAC-SHA-256 of nothing under the secret's subkey for this
/// purpose (KeyedDigest).
CipherKey wrapping_key(const Secret& secret);
/// The first 8 bytes of a digest likewise, for another purpose.
KeyName wrapping_key_name(const Secret& secret);

inline constexpr std::size_t wrapped_key_bytes = 40;
std::string wrap_key(const CipherKey& with, const CipherKey& key);
/// None if it was wrapped by another key, or was changed.
std::optional<CipherKey> unwrap_key(const CipherKey& with, std::string_view wrapped);

inline constexpr std::size_t cipher_tag_bytes = 16;
using CipherTag = std::array<std::uint8_t, cipher_tag_bytes>;

/// Encrypts `text` where it is. `part` is the nonce: a key of its own makes one sufficient for each
/// part, and the caller must never use a key for two texts of one part. `bound_to` is authenticated
/// and not stored.
CipherTag encrypt_in_place(const CipherKey& key, std::uint8_t part, std::string_view bound_to,
                           std::string& text);
/// False if anything differs from what was encrypted; then `text` means nothing.
bool decrypt_in_place(const CipherKey& key, std::uint8_t part, std::string_view bound_to,
                      const CipherTag& tag, std::string& text);

}  // namespace idem
