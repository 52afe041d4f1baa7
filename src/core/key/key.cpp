#include <idem/key.hpp>

#include "core/bytes/ascii.hpp"
#include "core/key/key_item.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::inline v0_1 {
namespace {

using Code = KeyError::Code;

std::unexpected<KeyError> refuse(Code code, std::string_view detail) {
  return std::unexpected(KeyError{code, std::string(detail)});
}

bool is_bare(std::string_view value) noexcept {
  return std::ranges::all_of(
      value, [](char c) { return c > ' ' && c <= '~' && c != '"' && c != ',' && c != ';'; });
}

}  // namespace

std::expected<std::string, KeyError> parse_key(std::span<const std::string_view> lines,
                                               const KeyOptions& options) {
  if (lines.empty()) return refuse(Code::missing, "The request has no idempotency key.");
  if (lines.size() > 1) {
    return refuse(Code::several_lines, "The request has more than one idempotency key field.");
  }
  // RFC 9651 §4.2 drops spaces around an item, and only spaces; the bare form gets the same.
  const std::string_view value = trimmed(lines.front(), " ");
  if (value.empty()) return refuse(Code::empty, "The idempotency key is empty.");

  std::string key;
  if (value.starts_with('"')) {
    if (options.syntax == KeySyntax::bare) {
      return refuse(Code::malformed, "The idempotency key must be written without quotes here.");
    }
    auto item = parse_string_item(value);
    if (!item) return std::unexpected(std::move(item.error()));
    key = std::move(*item);
  } else {
    if (options.syntax == KeySyntax::structured) {
      return refuse(Code::malformed,
                    "The idempotency key must be a quoted string here (RFC 9651).");
    }
    if (!is_bare(value)) {
      return refuse(Code::malformed,
                    "An unquoted idempotency key holds visible ASCII characters only, without "
                    "double quotes, commas and semicolons.");
    }
    key = value;
  }

  if (key.empty()) return refuse(Code::empty, "The idempotency key is empty.");
  if (key.size() > limits::key_bytes_max) {
    return refuse(Code::too_long, "The idempotency key is longer than " +
                                      std::to_string(limits::key_bytes_max) + " bytes.");
  }
  if (key.size() < options.bytes_min) {
    return refuse(Code::too_short, "The idempotency key is shorter than " +
                                       std::to_string(options.bytes_min) + " bytes.");
  }
  if (options.reject_pii && looks_like(key) != PersonalData::none) {
    return refuse(Code::personal,
                  "The idempotency key looks like an e-mail address, a phone number or a card "
                  "number; send a random one.");
  }
  return key;
}

std::expected<std::string, KeyError> parse_string_item(std::string_view value) {
  auto item = read_string_item(value);
  if (item) return std::move(*item);
  return refuse(Code::malformed, "The idempotency key is not a structured string (RFC 9651): " +
                                     std::string(item.error()) + ".");
}

}  // namespace idem::inline v0_1
