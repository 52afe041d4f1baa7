#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>

/// The `Idempotency-Key` field's value (protocol.md §8).
namespace idem {

enum class KeySyntax { any, structured, bare };

struct KeyOptions {
  KeySyntax syntax = KeySyntax::any;
  std::size_t bytes_min = 1;
};

struct KeyError {
  enum class Code { missing, several_lines, malformed, empty, too_long, too_short };
  Code code = Code::malformed;
  std::string detail;  ///< A sentence for people; never repeats the key itself.
};

/// The decoded key from *all* lines of the accepted field names of one request. A String Item
/// (RFC 9651 §3.3.3, §4.2; parameters are checked and ignored) or the bare de-facto form: visible
/// ASCII without `"` `,` `;`. A value that starts with `"` is never taken as bare. Quoted and bare
/// spellings of one value give one key. 1–255 bytes of printable ASCII after decoding.
std::expected<std::string, KeyError> parse_key(std::span<const std::string_view> lines,
                                               const KeyOptions& options);

/// The decoded string of a field value that is exactly one RFC 9651 String Item, without any length
/// rule; nothing for every other value.
std::expected<std::string, KeyError> parse_string_item(std::string_view value);

}  // namespace idem
