// Framing, compared. When our parser accepts the head of a request and finds nothing wrong in its
// body, http_parser and Boost.Beast must find the same method, target and body, and the same end of
// it; where they refuse, the reason must be one of those below. A server behind the gateway may
// well run one of them, and a request that two parsers end at different bytes is a smuggled one.
#include "fuzz/heads.hpp"
#include "fuzz/other_parsers.hpp"
#include "fuzz/targets.hpp"
#include "http/chunked.hpp"
#include "http/head.hpp"

#include <algorithm>
#include <string>

namespace idem::fuzz {
namespace {

using http::Framing;
using http::RequestHead;

/// Ours: the head, then the body as BodyReader reads it off a wire.
Reading read_body(const RequestHead& head, std::size_t head_bytes, std::string_view stream) {
  Reading reading{Outcome::complete,
                  std::string(head.method),
                  std::string(head.target),
                  "",
                  head.keep_alive,
                  head_bytes,
                  ""};
  std::string_view rest = stream.substr(head_bytes);
  const auto needs_more = [&] {
    reading.outcome = Outcome::incomplete;
    reading.bytes = 0;
    return reading;
  };
  if (head.framing == Framing::content_length) {
    reading.body = rest.substr(0, head.content_length);
    if (rest.size() < head.content_length) return needs_more();
    reading.bytes += head.content_length;
  }
  if (head.framing == Framing::chunked) {
    http::ChunkDecoder decoder;
    for (bool finished = false; !finished;) {
      if (rest.empty()) return needs_more();
      const auto step = decoder.feed(rest);
      if (!step) {
        reading.outcome = Outcome::refused;
        return reading;
      }
      reading.body += step->data;
      reading.bytes += step->consumed;
      rest.remove_prefix(step->consumed);
      finished = step->finished;
    }
  }
  return reading;
}

/// A request that we accept, as the other parsers see it.
struct Request {
  const RequestHead& head;
  std::string_view body;  ///< As it is on the wire.
};

bool is_framing(std::string_view name) {
  return http::same_name(name, "content-length") || http::same_name(name, "transfer-encoding");
}
bool is_connection(std::string_view name) {
  return http::same_name(name, "connection") || http::same_name(name, "proxy-connection");
}

bool has_unknown_method(const Request& request) { return !http_parser_knows(request.head.method); }

/// RFC 9110 §5.5 has OWS around a value; http_parser accepts only spaces for it behind these.
bool has_tab_behind(const Request& request, bool (*wanted)(std::string_view name)) {
  return std::ranges::any_of(request.head.fields, [&](const http::FieldView& field) {
    if (!wanted(field.name)) return false;
    // A head ends with CRLF, so there is one behind each value.
    for (const char* at = field.value.data() + field.value.size(); *at != '\r'; ++at) {
      if (*at == '\t') return true;
    }
    return false;
  });
}
bool has_tab_behind_framing(const Request& request) { return has_tab_behind(request, is_framing); }

/// We drop trailer fields unread (P13); they read them like header fields. Lines of the body's data
/// count as well: that makes the excuse a little wider, for refusals only.
bool has_in_trailer(const Request& request, bool (*wanted)(std::string_view name)) {
  if (request.head.framing != Framing::chunked) return false;
  for (auto at = request.body.find('\n'); at != request.body.npos;
       at = request.body.find('\n', at + 1)) {
    const auto line = request.body.substr(at + 1);
    if (wanted(line.substr(0, line.find(':')))) return true;
  }
  return false;
}
bool has_framing_in_trailer(const Request& request) { return has_in_trailer(request, is_framing); }

/// Beast wants a list of tokens in Proxy-Connection, which we drop unread, and in trailers too.
bool has_other_connection_field(const Request& request) {
  return count_of(request.head.fields, "proxy-connection") > 0 ||
         has_in_trailer(request, is_connection);
}

/// http_parser reads `Transfer-EncodingX` as the coding's field, but not its value.
bool has_longer_coding_name(const Request& request) {
  constexpr std::string_view coding = "transfer-encoding";
  return std::ranges::any_of(request.head.fields, [&](const http::FieldView& field) {
    return field.name.size() > coding.size() &&
           http::same_name(field.name.substr(0, coding.size()), coding);
  });
}

struct KnownRefusal {
  std::string_view parser;
  std::string_view why;
  bool (*is_reason)(const Request& request);
};

/// Inputs that they refuse and we accept. No others may be refused.
constexpr KnownRefusal known_refusals[] = {
    {"http_parser", "HPE_INVALID_METHOD", has_unknown_method},
    {"http_parser", "HPE_INVALID_CONTENT_LENGTH", has_tab_behind_framing},
    {"http_parser", "HPE_INVALID_TRANSFER_ENCODING", has_tab_behind_framing},
    {"http_parser", "HPE_INVALID_TRANSFER_ENCODING", has_longer_coding_name},
    {"http_parser", "HPE_UNEXPECTED_CONTENT_LENGTH", has_longer_coding_name},
    {"http_parser", "HPE_INVALID_CONTENT_LENGTH", has_framing_in_trailer},
    {"http_parser", "HPE_UNEXPECTED_CONTENT_LENGTH", has_framing_in_trailer},
    {"beast", "bad Content-Length", has_framing_in_trailer},
    {"beast", "bad Transfer-Encoding", has_framing_in_trailer},
    {"beast", "bad value", has_other_connection_field},
};

bool is_known(const KnownRefusal& known, std::string_view parser, const Reading& theirs,
              const Request& request) {
  return known.parser == parser && known.why == theirs.why && known.is_reason(request);
}

/// A list in which http_parser finds every member: it looks no further behind an empty one or HTAB.
bool is_plain_list(std::string_view list) {
  if (list.contains('\t')) return false;
  for (bool after_comma = true; const char c : list) {
    if (c == ',' && after_comma) return false;
    if (c != ' ') after_comma = c == ',';
  }
  return true;
}

/// http_parser reads the comma behind `up` as a letter that is not of `upgrade`.
bool is_cut_option(std::string_view option) {
  for (const std::string_view whole : {"close", "keep-alive", "upgrade"}) {
    if (option.size() < whole.size() && http::same_name(option, whole.substr(0, option.size()))) {
      return true;
    }
  }
  return false;
}

/// Where the Connection fields mean one thing to all: the others let `keep-alive` win over `close`
/// in HTTP/1.0, heed Proxy-Connection, and believe an HTTP/1.0 keep-alive that came by a proxy,
/// which may have passed it on without understanding it (RFC 9112 §9.3).
bool is_keep_alive_clear(const Request& request) {
  bool closes = false, keeps = false, cut = false;
  for (const http::FieldView& field : request.head.fields) {
    if (http::same_name(field.name, "proxy-connection")) return false;
    if (http::same_name(field.name, "via") && request.head.minor_version == 0) return false;
    if (!http::same_name(field.name, "connection")) continue;
    if (!is_plain_list(field.value)) return false;
    http::each_list_member(field.value, [&](std::string_view option) {
      closes |= http::same_name(option, "close");
      keeps |= http::same_name(option, "keep-alive");
      cut |= is_cut_option(option);
    });
  }
  return !cut && !(closes && keeps) && !has_tab_behind(request, is_connection);
}

void compare(std::string_view parser, const Reading& ours, const Reading& theirs,
             const Request& request) {
  const auto same = [&](bool holds, std::string_view what) {
    check(holds, std::string(parser) + " agrees about the " + std::string(what));
  };
  if (theirs.outcome == Outcome::refused) {
    // A body that is not over yet we may still refuse.
    if (ours.outcome == Outcome::incomplete) return;
    const bool known = std::ranges::any_of(known_refusals, [&](const KnownRefusal& one) {
      return is_known(one, parser, theirs, request);
    });
    check(known, std::string(parser) + " takes it too (" + theirs.why + ')');
    return;
  }
  same(theirs.method == ours.method, "method");
  same(theirs.target == ours.target, "target");
  same(theirs.outcome == ours.outcome && theirs.bytes == ours.bytes, "message's end");
  same(theirs.body == ours.body, "body");
  if (is_keep_alive_clear(request)) same(theirs.keep_alive == ours.keep_alive, "connection");
}

}  // namespace

void differential(std::string_view input) {
  const ExactBytes bytes(input);
  RequestHead head;
  std::size_t scanned = 0;
  const auto result = http::parse_request_head(bytes.view(), scanned, head);
  if (!result || !*result) return;
  const Reading ours = read_body(head, **result, bytes.view());
  if (ours.outcome == Outcome::refused) return;
  const Request request{head, bytes.view().substr(**result)};
  compare("http_parser", ours, read_with_http_parser(bytes.view()), request);
  compare("beast", ours, read_with_beast(bytes.view()), request);
}

}  // namespace idem::fuzz
