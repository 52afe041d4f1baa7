#include "http/characters.hpp"
#include "http/framing_fields.hpp"
#include "http/head.hpp"
#include "http/head_fields.hpp"
#include "idem/limits.hpp"

#include <algorithm>

namespace idem::http {
namespace {

class ResponseReader {
 public:
  ResponseReader(std::string_view buffer, std::string_view request_method, ResponseHead& head)
      : begin_(buffer.data()),
        reader_{begin_, begin_ + std::min(buffer.size(), limits::head_bytes_max)},
        to_head_(request_method == "HEAD"),
        head_(head) {}

  void clear();
  HeadResult read();

 private:
  Reading read_status_line();
  void note_field(const FieldView& field);
  Reading judge_framing();
  Reading refuse(std::string_view detail) { return reader_.refuse(502, detail); }

  const char* begin_;
  LineReader reader_;
  bool to_head_;
  ResponseHead& head_;
  int lengths_ = 0;
  int codings_ = 0;
  std::string_view length_;
  std::string_view coding_;
  bool says_close_ = false;
  bool says_keep_alive_ = false;
};

HeadResult ResponseReader::read() {
  static constexpr Refusal too_many{502, "the response head has more than 100 fields"};
  static constexpr Refusal too_long{502, "the response head is longer than 16 KiB"};
  constexpr std::size_t usual_fields = 16;
  Reading reading = read_status_line();
  if (reading == Reading::done) {
    head_.fields.reserve(usual_fields);
    reading = read_fields(reader_, Side::response, too_many, head_.fields,
                          [this](const FieldView& field) {
                            note_field(field);
                            return Reading::done;
                          });
  }
  if (reading == Reading::end_of_fields) reading = judge_framing();
  HeadResult result = head_result(reading, reader_, begin_, too_long);
  // The shared readers refuse with a client's status; a bad response has one status only.
  if (!result) result.error().status = 502;
  return result;
}

Reading ResponseReader::read_status_line() {
  std::string_view line;
  const Reading reading = read_line_rest(reader_, line);
  if (reading != Reading::done) return reading;
  // "HTTP/1.1 200" with or without the space before an empty reason (RFC 9112 §4 asks for it, many
  // servers leave it out).
  const bool formed = line.size() >= 12 && line.starts_with("HTTP/1.") &&
                      (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                      is_char(line[9], char_digit) && is_char(line[10], char_digit) &&
                      is_char(line[11], char_digit) && (line.size() == 12 || line[12] == ' ');
  if (!formed) return refuse("the status line is malformed (RFC 9112 4)");
  head_.minor_version = line[7] - '0';
  head_.status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  if (head_.status < 100 || head_.status > 599) {
    return refuse("the status code has no class (RFC 9110 15)");
  }
  head_.reason = line.size() > 13 ? line.substr(13) : std::string_view{};
  return Reading::done;
}

/// Refuses nothing: judge_framing() decides about all fields together.
void ResponseReader::note_field(const FieldView& field) {
  switch (field.known) {
    case FieldName::content_length:
      ++lengths_;
      length_ = field.value;
      break;
    case FieldName::transfer_encoding:
      ++codings_;
      coding_ = field.value;
      break;
    case FieldName::connection:
      each_list_member(field.value, [this](std::string_view option) {
        if (same_name(option, "close")) says_close_ = true;
        if (same_name(option, "keep-alive")) says_keep_alive_ = true;
      });
      break;
    case FieldName::authorization:
    case FieldName::content_type:
    case FieldName::expect:
    case FieldName::host:
    case FieldName::idempotency_key:
    case FieldName::keep_alive:
    case FieldName::location:
    case FieldName::other:
    case FieldName::proxy_connection:
    case FieldName::retry_after:
    case FieldName::te:
    case FieldName::trailer:
    case FieldName::upgrade:
    case FieldName::via:
      break;
  }
}

/// RFC 9112 §6.3, in its order.
Reading ResponseReader::judge_framing() {
  head_.keep_alive = !says_close_ && (head_.minor_version == 1 || says_keep_alive_);
  const auto length = content_length_of(lengths_ == 1 ? length_ : std::string_view{});
  const int status = head_.status;
  if (to_head_ || status < 200 || status == 204 || status == 304) {
    // No body follows, whatever the fields say (P19); the length is what a GET would have had.
    if (length && codings_ == 0) head_.content_length = *length;
    // A server that announces a body where none may follow may send it a moment later: those bytes
    // must not meet the next request on this connection.
    const bool body_announced = codings_ != 0 || (status == 204 && length.value_or(0) > 0);
    if (body_announced) head_.keep_alive = false;
    return Reading::done;
  }
  if (codings_ != 0) {
    if (lengths_ != 0) return refuse("Content-Length together with Transfer-Encoding");
    if (head_.minor_version == 0) return refuse("Transfer-Encoding in HTTP/1.0 (RFC 9112 6.1)");
    if (codings_ > 1 || coding_of(coding_) != Coding::chunked) {
      return refuse("a Transfer-Encoding other than chunked (RFC 9112 6.3)");
    }
    head_.framing = Framing::chunked;
    return Reading::done;
  }
  if (lengths_ != 0) {
    if (!length) return refuse("not exactly one valid Content-Length (RFC 9112 6.3)");
    head_.framing = Framing::content_length;
    head_.content_length = *length;
    return Reading::done;
  }
  head_.framing = Framing::until_close;
  head_.keep_alive = false;
  return Reading::done;
}

void ResponseReader::clear() {
  head_.status = 0;
  head_.reason = {};
  head_.minor_version = 1;
  head_.fields.clear();
  head_.framing = Framing::none;
  head_.content_length = 0;
  head_.keep_alive = true;
}

}  // namespace

HeadResult parse_response_head(std::string_view buffer, std::size_t& scanned,
                               std::string_view request_method, ResponseHead& out) {
  return parse_head(buffer, scanned, ResponseReader(buffer, request_method, out));
}

}  // namespace idem::http
