#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>

/// @file
/// The `Idempotency-Key` field's value (protocol.md §8).
namespace idem::inline v0_1 {

/// `structured`: a String Item in quotes; `bare`: without them.
enum class KeySyntax { any, structured, bare };

/// What a key must look like.
struct KeyOptions {
  KeySyntax syntax = KeySyntax::any;
  std::size_t bytes_min = 1;  ///< After decoding.
  bool reject_pii = false;    ///< Refuse keys that looks_like() regards as personal data.
};

/// Personal data that a key seems to contain. Keys travel through other systems' logs and tools, so
/// they should carry nothing about a person.
enum class PersonalData { none, email, phone, card };

/// A guess by shape, for a decoded key: an address with a dotted domain; a number in international
/// form (`+` and 7 to 15 digits, ITU-T E.164) or in the groups of North America; 13 to 19 digits
/// with an issuer's prefix (ISO/IEC 7812) and a right check digit. UUIDs are none of these.
PersonalData looks_like(std::string_view key) noexcept;

/// Why a request has no key.
struct [[nodiscard]] KeyError {
  /// For programs.
  enum class Code { missing, several_lines, malformed, empty, too_long, too_short, personal };
  Code code = Code::malformed;
  std::string detail;  ///< A sentence for people; never repeats the key itself.
};

/// The decoded key from *all* lines of the accepted field names of one request. A String Item
/// (RFC 9651 §3.3.3, §4.2; parameters are checked and ignored) or the bare de-facto form: visible
/// ASCII without `"` `,` `;`. A value that starts with `"` is never parsed as bare. Quoted and bare
/// spellings of one value give one key. 1–255 bytes of printable ASCII after decoding.
[[nodiscard]] std::expected<std::string, KeyError> parse_key(
    std::span<const std::string_view> lines, const KeyOptions& options);

/// The decoded string of a field value that is exactly one RFC 9651 String Item, without any length
/// rule; nothing for every other value.
[[nodiscard]] std::expected<std::string, KeyError> parse_string_item(std::string_view value);

}  // namespace idem::inline v0_1
