#include "http/authority.hpp"
#include "http/characters.hpp"
#include "http/framing_fields.hpp"
#include "http/head.hpp"
#include "http/head_fields.hpp"
#include "idem/limits.hpp"

#include <algorithm>

namespace idem::http {
namespace {

class RequestReader {
 public:
  RequestReader(std::string_view buffer, RequestHead& head)
      : begin_(buffer.data()),
        reader_{begin_, begin_ + std::min(buffer.size(), limits::head_bytes_max)},
        head_(head) {}

  void clear();
  HeadResult read();

 private:
  Reading read_start();
  Reading skip_empty_lines();
  Reading read_method();
  Reading read_target();
  Reading read_version();
  Reading judge_target();
  Reading judge_absolute(std::size_t scheme_bytes);
  Reading judge_field(const FieldView& field);
  Reading judge_other(const FieldView& field);
  Reading judge_host(const FieldView& field);
  Reading judge_content_length(const FieldView& field);
  Reading judge_transfer_encoding(const FieldView& field);
  Reading judge_connection(const FieldView& field);
  Reading finish();

  const char* begin_;
  LineReader reader_;
  RequestHead& head_;
  std::string_view target_host_;  ///< Of an absolute-form target.
  bool has_content_type_ = false;
  bool has_host_ = false;
  bool has_length_ = false;
  bool has_coding_ = false;
  bool unknown_coding_ = false;
  bool unknown_expectation_ = false;
  bool has_upgrade_ = false;
  bool has_via_ = false;
  bool says_close_ = false;
  bool says_keep_alive_ = false;
  bool says_upgrade_ = false;
};

HeadResult RequestReader::read() {
  static constexpr Refusal too_many{431, "the head has more than 100 fields"};
  static constexpr Refusal too_long{431, "the head is longer than 16 KiB"};
  Reading reading = read_start();
  if (reading == Reading::done) {
    reading = read_fields(reader_, Side::request, too_many, head_.fields,
                          [this](const FieldView& field) { return judge_field(field); });
  }
  if (reading == Reading::end_of_fields) reading = finish();
  return head_result(reading, reader_, begin_, too_long);
}

Reading RequestReader::read_start() {
  Reading reading = skip_empty_lines();
  if (reading != Reading::done) return reading;
  // The line is read in a window of its own, so that its limit needs no check per byte.
  constexpr std::ptrdiff_t line_max = limits::request_line_bytes_max + 2;
  const char* const end = reader_.end;
  const bool over = end - reader_.at >= line_max;
  if (over) reader_.end = reader_.at + line_max;
  reading = read_method();
  if (reading == Reading::done) reading = read_target();
  if (reading == Reading::done) reading = read_version();
  reader_.end = end;
  if (reading == Reading::more && over) {
    return reader_.refuse(414, "the request line is longer than 8,192 bytes (RFC 9112 3)");
  }
  return reading == Reading::done ? judge_target() : reading;
}

Reading RequestReader::skip_empty_lines() {
  for (std::size_t lines = 0;; ++lines) {
    if (reader_.at == reader_.end) return Reading::more;
    if (*reader_.at != '\r') return Reading::done;
    if (lines == limits::head_empty_lines_max) {
      return reader_.refuse(400, "too many empty lines before the request line (RFC 9112 2.2)");
    }
    std::string_view nothing;
    const Reading reading = read_line_rest(reader_, nothing);
    if (reading != Reading::done) return reading;
  }
}

Reading RequestReader::read_method() {
  const char* const begin = reader_.at;
  constexpr std::ptrdiff_t bytes_max = limits::request_method_bytes_max;
  const char* const bound = begin + std::min(reader_.end - begin, bytes_max + 1);
  const char* const at = skip_chars(begin, bound, char_token);
  if (at - begin > bytes_max) return reader_.refuse(400, "the method is longer than 32 bytes");
  if (at == reader_.end) return Reading::more;
  if (at == begin || *at != ' ') {
    return reader_.refuse(400, "the method is not a token before one space (RFC 9112 3.1)");
  }
  head_.method = {begin, at};
  reader_.at = at + 1;
  return Reading::done;
}

Reading RequestReader::read_target() {
  const char* const begin = reader_.at;
  const char* const at = skip_chars(begin, reader_.end, char_target);
  if (at == reader_.end) return Reading::more;
  if (at == begin && *at == ' ') return reader_.refuse(400, "the request target is empty");
  if (*at == '#') return reader_.refuse(400, "a fragment in the request target (RFC 9112 3.2)");
  if (*at != ' ') {
    return reader_.refuse(400,
                          "a byte that no request target may hold, or no version (RFC 9112 3.2)");
  }
  head_.target = {begin, at};
  reader_.at = at + 1;
  return Reading::done;
}

Reading RequestReader::read_version() {
  std::string_view version;
  const Reading reading = read_line_rest(reader_, version);
  if (reading != Reading::done) return reading;
  if (version == "HTTP/1.1") {
    head_.minor_version = 1;
    return Reading::done;
  }
  if (version == "HTTP/1.0") {
    head_.minor_version = 0;
    return Reading::done;
  }
  const bool formed = version.size() == 8 && version.starts_with("HTTP/") &&
                      is_char(version[5], char_digit) && version[6] == '.' &&
                      is_char(version[7], char_digit);
  if (formed) return reader_.refuse(505, "only HTTP/1.0 and HTTP/1.1 are served here");
  return reader_.refuse(400, "the version is malformed (RFC 9112 2.3)");
}

Reading RequestReader::judge_target() {
  const std::string_view target = head_.target;
  if (head_.method == "CONNECT") return reader_.refuse(501, "CONNECT is not served");
  head_.origin_form = target;
  if (target[0] == '/') return Reading::done;
  if (target == "*" && head_.method == "OPTIONS") return Reading::done;
  if (target.size() >= 7 && same_name(target.substr(0, 7), "http://")) return judge_absolute(7);
  if (target.size() >= 8 && same_name(target.substr(0, 8), "https://")) return judge_absolute(8);
  return reader_.refuse(400, "the request target has no form for this method (RFC 9112 3.2)");
}

/// RFC 9112 §3.2.2: the Host field is ignored, and the origin-form is forwarded.
Reading RequestReader::judge_absolute(std::size_t scheme_bytes) {
  const std::string_view rest = head_.target.substr(scheme_bytes);
  const auto authority_end = std::min(rest.find_first_of("/?"), rest.size());
  target_host_ = rest.substr(0, authority_end);
  if (!is_authority(target_host_)) {
    return reader_.refuse(400, "the authority of the target is invalid (RFC 9110 4.2.1, 4.2.4)");
  }
  const std::string_view path = rest.substr(authority_end);
  if (path.empty()) {
    // §3.2.4: without a path this is what OPTIONS for the server as a whole looks like to a proxy.
    head_.origin_form = head_.method == "OPTIONS" ? "*" : "/";
  } else if (path[0] == '?') {
    head_.origin_copy = std::make_shared<const std::string>("/" + std::string(path));
    head_.origin_form = *head_.origin_copy;
  } else {
    head_.origin_form = path;
  }
  return Reading::done;
}

Reading RequestReader::judge_field(const FieldView& field) {
  switch (field.known) {
    case FieldName::host:
      return judge_host(field);
    case FieldName::content_length:
      return judge_content_length(field);
    case FieldName::transfer_encoding:
      return judge_transfer_encoding(field);
    case FieldName::connection:
      return judge_connection(field);
    case FieldName::upgrade:
      has_upgrade_ = true;
      return Reading::done;
    case FieldName::expect:
      // RFC 9110 §10.1.1: HTTP/1.0 has no expectations.
      if (head_.minor_version == 0) return Reading::done;
      if (!same_name(field.value, "100-continue")) unknown_expectation_ = true;
      head_.expect_continue = true;
      return Reading::done;
    case FieldName::other:
      return judge_other(field);
    case FieldName::content_type:
      // The upstream may read the second, and the fingerprint the first.
      if (has_content_type_) return reader_.refuse(400, "more than one Content-Type field");
      has_content_type_ = true;
      return Reading::done;
    case FieldName::authorization:
    case FieldName::idempotency_key:
    case FieldName::keep_alive:
    case FieldName::location:
    case FieldName::proxy_connection:
    case FieldName::retry_after:
    case FieldName::te:
    case FieldName::trailer:
      return Reading::done;
    case FieldName::via:
      has_via_ = true;
      return Reading::done;
  }
  return Reading::done;
}

Reading RequestReader::judge_other(const FieldView& field) {
  if (looks_like_framing(field.name)) {
    return reader_.refuse(400, "a field name that a server may read as a framing field");
  }
  // No client sends one, and a server that decodes it reads `Idem%2dFence` as a field of ours.
  if (has_escape(field.name)) return reader_.refuse(400, "a percent escape in a field name");
  if (!same_name(field.name, "content-encoding")) return Reading::done;
  bool chunked = false;
  each_list_member(field.value,
                   [&](std::string_view coding) { chunked |= same_name(coding, "chunked"); });
  // No such content coding exists (RFC 9110 §8.4.1); it is meant for servers that confuse the two
  // fields.
  if (chunked) return reader_.refuse(400, "chunked as a content coding (RFC 9110 8.4.1)");
  return Reading::done;
}

Reading RequestReader::judge_host(const FieldView& field) {
  if (has_host_) return reader_.refuse(400, "more than one Host field (RFC 9112 3.2)");
  if (!is_authority(field.value)) return reader_.refuse(400, "the Host is invalid (RFC 9112 3.2)");
  has_host_ = true;
  head_.host = field.value;
  return Reading::done;
}

Reading RequestReader::judge_content_length(const FieldView& field) {
  if (has_length_) return reader_.refuse(400, "more than one Content-Length (RFC 9112 6.3)");
  if (has_coding_) {
    return reader_.refuse(400, "Content-Length together with Transfer-Encoding (RFC 9112 6.1)");
  }
  const auto length = content_length_of(field.value);
  if (!length) return reader_.refuse(400, "the Content-Length is not one number (RFC 9112 6.3)");
  has_length_ = true;
  head_.framing = Framing::content_length;
  head_.content_length = *length;
  return Reading::done;
}

Reading RequestReader::judge_transfer_encoding(const FieldView& field) {
  if (head_.minor_version == 0) {
    return reader_.refuse(400, "Transfer-Encoding in HTTP/1.0 (RFC 9112 6.1)");
  }
  if (has_coding_) return reader_.refuse(400, "more than one Transfer-Encoding field");
  if (has_length_) {
    return reader_.refuse(400, "Content-Length together with Transfer-Encoding (RFC 9112 6.1)");
  }
  has_coding_ = true;
  switch (coding_of(field.value)) {
    case Coding::malformed:
      return reader_.refuse(400, "the Transfer-Encoding is malformed (RFC 9112 6.1, 6.3)");
    // Only a request without any other fault gets a 501, so it waits for the end of the head.
    case Coding::unknown:
      unknown_coding_ = true;
      break;
    case Coding::chunked:
      head_.framing = Framing::chunked;
      break;
  }
  return Reading::done;
}

/// RFC 9110 §7.6.1 makes us drop the fields that Connection names. A client that names one by which
/// we route, frame, authorise or deduplicate would show the upstream another request than us (P14).
bool may_be_dropped(std::string_view option) noexcept {
  switch (known_field(option)) {
    case FieldName::authorization:
    case FieldName::content_length:
    case FieldName::content_type:
    case FieldName::host:
    case FieldName::idempotency_key:
    case FieldName::transfer_encoding:
      return false;
    case FieldName::connection:
    case FieldName::expect:
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
  return !same_name(option, "cookie") && !same_name(option.substr(0, 5), "idem-");
}

Reading RequestReader::judge_connection(const FieldView& field) {
  bool tokens = true;
  bool fair = true;
  each_list_member(field.value, [&](std::string_view option) {
    if (same_name(option, "close")) {
      says_close_ = true;
    } else if (same_name(option, "keep-alive")) {
      says_keep_alive_ = true;
    } else if (same_name(option, "upgrade")) {
      says_upgrade_ = true;
    } else if (!is_token(option)) {
      tokens = false;
    } else if (!may_be_dropped(option)) {
      fair = false;
    }
  });
  if (!tokens) return reader_.refuse(400, "a Connection option is not a token (RFC 9110 7.6.1)");
  if (!fair) return reader_.refuse(400, "the Connection field names a field that must be kept");
  return Reading::done;
}

Reading RequestReader::finish() {
  if (!has_host_ && head_.minor_version == 1) {
    return reader_.refuse(400, "no Host field (RFC 9112 3.2)");
  }
  if (!target_host_.empty()) head_.host = target_host_;
  if (unknown_coding_) return reader_.refuse(501, "a transfer coding that is not served");
  if (unknown_expectation_) return reader_.refuse(417, "an expectation that is not served");
  // An old proxy passes Connection on without understanding it, and then waits for the end (P29,
  // RFC 9112 §9.3).
  const bool old_keep_alive = says_keep_alive_ && !has_via_;
  head_.keep_alive = !says_close_ && (head_.minor_version == 1 || old_keep_alive);
  // RFC 9110 §7.8: an Upgrade in HTTP/1.0 is ignored.
  head_.upgrade = has_upgrade_ && says_upgrade_ && head_.minor_version == 1;
  return Reading::done;
}

void RequestReader::clear() {
  head_.method = head_.target = head_.origin_form = head_.host = {};
  head_.minor_version = 1;
  head_.fields.clear();
  head_.framing = Framing::none;
  head_.content_length = 0;
  head_.keep_alive = true;
  head_.expect_continue = head_.upgrade = false;
  head_.origin_copy.reset();
}

}  // namespace

HeadResult parse_request_head(std::string_view buffer, std::size_t& scanned, RequestHead& out) {
  return parse_head(buffer, scanned, RequestReader(buffer, out));
}

}  // namespace idem::http
