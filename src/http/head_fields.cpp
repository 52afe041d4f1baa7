#include "http/head_fields.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/percent.hpp"
#include "http/characters.hpp"
#include "idem/limits.hpp"

#include <cstring>

namespace idem::http {
namespace {

/// `name` is a token and `known` holds letters and "-" only; then one bit is all that case changes.
bool is_known(std::string_view name, std::string_view known) noexcept {
  for (std::size_t i = 0; i < known.size(); ++i) {
    if ((name[i] | 0x20) != known[i]) return false;
  }
  return true;
}

/// `at` is on a control byte or at the end.
Reading read_line_end(LineReader& reader, const char* at) {
  if (at == reader.end) return Reading::more;
  if (*at == '\n') return reader.refuse(400, "a line ends with LF alone (RFC 9112 2.2)");
  if (*at != '\r') return reader.refuse(400, "a control byte in the head (RFC 9110 5.5)");
  if (at + 1 == reader.end) return Reading::more;
  if (at[1] != '\n') return reader.refuse(400, "a CR without LF (RFC 9112 2.2)");
  reader.at = at + 2;
  return Reading::done;
}

Reading refuse_name(LineReader& reader, const char* at) {
  if (at == reader.at && is_blank(*at)) {
    return reader.refuse(400, "a line begins with white space (RFC 9112 2.2, 5.2)");
  }
  if (is_blank(*at)) return reader.refuse(400, "white space before a colon (RFC 9112 5.1)");
  if (*at == '\r' || *at == '\n') return reader.refuse(400, "a field line without a colon");
  return reader.refuse(400, "a field name is not a token (RFC 9110 5.1)");
}

}  // namespace

Reading read_line_rest(LineReader& reader, std::string_view& text) {
  const char* const begin = reader.at;
  const char* const stop = find_control(begin, reader.end);
  text = {begin, stop};
  return read_line_end(reader, stop);
}

Reading read_field_line(LineReader& reader, Side side, FieldView& field) {
  const char* const begin = reader.at;
  const char* const end = reader.end;
  const char* at = skip_chars(begin, end, char_token);
  if (at == end) return Reading::more;
  if (at == begin && *at == '\r') {
    const Reading reading = read_line_end(reader, at);
    return reading == Reading::done ? Reading::end_of_fields : reading;
  }
  field.name = {begin, at};
  if (side == Side::response && at != begin) {
    at = skip_blanks(at, end);
    if (at == end) return Reading::more;
  }
  if (at == begin || *at != ':') return refuse_name(reader, at);
  const char* const value = skip_blanks(at + 1, end);
  const char* const stop = find_control(value, end);
  const Reading reading = read_line_end(reader, stop);
  if (reading != Reading::done) return reading;
  const char* last = stop;
  while (last != value && is_blank(last[-1])) --last;
  field.value = {value, last};
  field.known = known_field(field.name);
  return Reading::done;
}

HeadResult head_result(Reading reading, const LineReader& reader, const char* begin,
                       const Refusal& too_long) {
  switch (reading) {
    case Reading::done:
    case Reading::end_of_fields:
      return static_cast<std::size_t>(reader.at - begin);
    case Reading::refused:
      return std::unexpected(reader.refusal);
    case Reading::more:
      break;
  }
  if (reader.end - begin < static_cast<std::ptrdiff_t>(limits::head_bytes_max)) {
    return std::optional<std::size_t>{};
  }
  return std::unexpected(too_long);
}

FieldName known_field(std::string_view name) noexcept {
  const auto is = [name](std::string_view known, FieldName field) {
    return is_known(name, known) ? field : FieldName::other;
  };
  switch (name.size()) {
    case 2:
      return is("te", FieldName::te);
    case 3:
      return is("via", FieldName::via);
    case 4:
      return is("host", FieldName::host);
    case 6:
      return is("expect", FieldName::expect);
    case 7:
      return (name[0] | 0x20) == 'u' ? is("upgrade", FieldName::upgrade)
                                     : is("trailer", FieldName::trailer);
    case 8:
      return is("location", FieldName::location);
    case 10:
      return (name[0] | 0x20) == 'c' ? is("connection", FieldName::connection)
                                     : is("keep-alive", FieldName::keep_alive);
    case 11:
      return is("retry-after", FieldName::retry_after);
    case 12:
      return is("content-type", FieldName::content_type);
    case 13:
      return is("authorization", FieldName::authorization);
    case 14:
      return is("content-length", FieldName::content_length);
    case 15:
      return is("idempotency-key", FieldName::idempotency_key);
    case 16:
      return is("proxy-connection", FieldName::proxy_connection);
    case 17:
      return is("transfer-encoding", FieldName::transfer_encoding);
    default:
      return FieldName::other;
  }
}

bool looks_like_framing(std::string_view name) noexcept {
  constexpr std::string_view length = "contentlength";
  constexpr std::string_view encoding = "transferencoding";
  if (name.size() < length.size()) return false;
  std::string_view wanted;
  std::size_t matched = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    // `Transfer-%45ncoding`: a server that decodes escapes sees the letter.
    char letter = decoded_at(name, i, Plus::is_itself);
    if (!is_char(letter, char_letter)) continue;
    letter = lower_letter(letter);
    if (matched == 0) wanted = letter == 'c' ? length : encoding;
    if (matched == wanted.size() || letter != wanted[matched]) return false;
    ++matched;
  }
  return matched != 0 && matched == wanted.size();
}

bool has_escape(std::string_view name) noexcept {
  for (auto at = name.find('%'); at != std::string_view::npos; at = name.find('%', at + 1)) {
    if (escaped_byte(name, at) >= 0) return true;
  }
  return false;
}

bool still_incomplete(std::string_view buffer, std::size_t scanned) noexcept {
  // A short head is read again at once: that covers empty lines and the limit of the method.
  if (scanned < 2 * limits::request_method_bytes_max || scanned > buffer.size()) return false;
  if (buffer.size() >= limits::head_bytes_max || buffer[scanned - 1] == '\r') return false;
  // The request line may have grown over its limit; empty lines before it shift that a little.
  constexpr std::size_t line_limit = limits::request_line_bytes_max + 2;
  constexpr std::size_t shift_max = 2 * limits::head_empty_lines_max;
  if (scanned < line_limit + shift_max && buffer.size() >= line_limit) return false;
  const char* const fresh = buffer.data() + scanned;
  const char* const end = buffer.data() + buffer.size();
  // Found from behind and fast, for this runs once per byte where bytes come one by one.
  const void* const line_feed = ::memrchr(buffer.data(), '\n', scanned);
  const char* const line = line_feed == nullptr ? nullptr : static_cast<const char*>(line_feed) + 1;
  if (line == nullptr || line <= buffer.data() + shift_max) {
    return skip_chars(fresh, end, char_target) == end;
  }
  const bool in_value = std::memchr(line, ':', static_cast<std::size_t>(fresh - line)) != nullptr;
  if (in_value) return find_control(fresh, end) == end;
  // Behind a blank that a response may have before its colon, the name must not go on.
  return !is_blank(fresh[-1]) && skip_chars(fresh, end, char_token) == end;
}

bool is_token(std::string_view text) noexcept {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  return begin != end && skip_chars(begin, end, char_token) == end;
}

bool is_field_value(std::string_view text) noexcept {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (begin == end) return true;
  return !is_blank(text.front()) && !is_blank(text.back()) && find_control(begin, end) == end;
}

}  // namespace idem::http
