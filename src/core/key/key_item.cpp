#include "core/key/key_item.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/utf8.hpp"

#include <algorithm>
#include <optional>

namespace idem {
namespace {

bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
bool is_alpha(char c) noexcept { return is_lower(c) || (c >= 'A' && c <= 'Z'); }
bool is_printable(char c) noexcept { return c >= ' ' && c <= '~'; }
bool is_token_char(char c) noexcept {
  return is_alpha(c) || is_digit(c) ||
         (c != 0 && std::string_view("!#$%&'*+-.^_`|~:/").contains(c));
}

// The parsing algorithms of RFC 9651 §4.2.3 to §4.2.10; each reads from the front of rest_ and
// returns whether it could. skip_*() checks the syntax and drops the value.
class ItemReader {
 public:
  explicit ItemReader(std::string_view value) : rest_(value) {}

  void skip_spaces() noexcept {
    while (take(' ')) {
    }
  }
  bool at_end() const noexcept { return rest_.empty(); }
  bool at_string() const noexcept { return rest_.starts_with('"'); }
  std::optional<std::string> read_string();
  bool skip_parameters();

 private:
  bool skip_key();
  bool skip_bare_item();
  bool skip_number(bool fraction_allowed);
  bool skip_token();
  bool skip_byte_sequence();
  bool skip_display_string();

  bool take(char c) noexcept {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view take_while(auto wanted) noexcept {
    const auto end = std::ranges::find_if_not(rest_, wanted);
    const auto taken = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest_;
};

std::optional<std::string> ItemReader::read_string() {
  if (!take('"')) return {};
  std::string value;
  while (!rest_.empty()) {
    char c = rest_.front();
    rest_.remove_prefix(1);
    if (c == '"') return value;
    if (!is_printable(c)) return {};
    if (c == '\\') {
      if (!rest_.starts_with('"') && !rest_.starts_with('\\')) return {};
      c = rest_.front();
      rest_.remove_prefix(1);
    }
    value += c;
  }
  return {};
}

bool ItemReader::skip_parameters() {
  while (take(';')) {
    skip_spaces();
    if (!skip_key()) return false;
    if (take('=') && !skip_bare_item()) return false;
  }
  return true;
}

bool ItemReader::skip_key() {
  if (rest_.empty() || !(is_lower(rest_.front()) || rest_.front() == '*')) return false;
  take_while([](char c) {
    return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
  });
  return true;
}

bool ItemReader::skip_bare_item() {
  if (rest_.empty()) return false;
  const char first = rest_.front();
  if (first == '-' || is_digit(first)) return skip_number(true);
  if (first == '"') return read_string().has_value();
  if (first == '*' || is_alpha(first)) return skip_token();
  if (first == ':') return skip_byte_sequence();
  if (first == '?') return take('?') && (take('0') || take('1'));
  if (first == '@') return take('@') && skip_number(false);
  if (first == '%') return skip_display_string();
  return false;
}

bool ItemReader::skip_number(bool fraction_allowed) {
  take('-');
  const std::size_t whole = take_while(is_digit).size();
  if (whole == 0 || whole > 15) return false;
  if (!rest_.starts_with('.')) return true;
  if (!fraction_allowed || whole > 12) return false;
  take('.');
  const std::size_t fraction = take_while(is_digit).size();
  return fraction >= 1 && fraction <= 3;
}

bool ItemReader::skip_token() {
  take_while(is_token_char);
  return true;
}

bool ItemReader::skip_byte_sequence() {
  take(':');
  const std::size_t digits =
      take_while([](char c) { return is_alpha(c) || is_digit(c) || c == '+' || c == '/'; }).size();
  const std::size_t padding = take_while([](char c) { return c == '='; }).size();
  // Padding may be missing (§4.2.7), not wrong; a single last digit decodes to nothing.
  if (digits % 4 == 1 || (padding != 0 && (digits + padding) % 4 != 0) || padding > 2) return false;
  return take(':');
}

bool ItemReader::skip_display_string() {
  take('%');
  if (!take('"')) return false;
  std::string bytes;
  while (!rest_.empty()) {
    const char c = rest_.front();
    if (!is_printable(c)) return false;
    rest_.remove_prefix(1);
    if (c == '"') return is_utf8(bytes);
    if (c != '%') {
      bytes += c;
      continue;
    }
    const auto byte = from_hex<1>(rest_.substr(0, 2));
    if (!byte) return false;
    bytes += static_cast<char>(byte->front());
    rest_.remove_prefix(2);
  }
  return false;
}

}  // namespace

std::expected<std::string, std::string_view> read_string_item(std::string_view value) {
  ItemReader reader(value);
  reader.skip_spaces();
  if (!reader.at_string()) return std::unexpected("it does not start with a double quote");
  std::optional<std::string> decoded = reader.read_string();
  if (!decoded) {
    return std::unexpected(
        "the quoted string has no end, a byte that is not printable ASCII, or a wrong escape");
  }
  if (!reader.skip_parameters()) return std::unexpected("a parameter is malformed");
  reader.skip_spaces();
  if (!reader.at_end()) return std::unexpected("something follows the quoted string");
  return std::move(*decoded);
}

}  // namespace idem
