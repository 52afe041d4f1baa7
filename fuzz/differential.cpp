// Framing, compared. When our parser takes the head of a request and finds nothing wrong in its
// body, http_parser and Boost.Beast must find the same method, target and body, and the same end of
// it; where they refuse, the reason must be one of those below. Whoever sits behind the gateway may
// well run one of them, and a request that two parsers end at different bytes is a smuggled one.
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
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

/// Ours: the head, then the body as BodyReader takes it off a wire.
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

}  // namespace

void differential(std::string_view input) {
  const ExactBytes bytes(input);
  RequestHead head;
  std::size_t scanned = 0;
  const auto result = http::parse_request_head(bytes.view(), scanned, head);
  if (!result || !*result) return;
  const Reading ours = read_body(head, **result, bytes.view());
  if (ours.outcome == Outcome::refused) return;
  for (const auto& [parser, theirs] :
       {std::pair{"http_parser", read_with_http_parser(bytes.view())},
        std::pair{"beast", read_with_beast(bytes.view())}}) {
    check(theirs.outcome != Outcome::refused, std::string(parser) + " refuses: " + theirs.why);
    check(theirs.method == ours.method && theirs.target == ours.target,
          std::string(parser) + " method, target");
    check(theirs.outcome == ours.outcome && theirs.bytes == ours.bytes,
          std::string(parser) + " end");
    check(theirs.body == ours.body, std::string(parser) + " body");
    check(theirs.keep_alive == ours.keep_alive, std::string(parser) + " keep alive");
  }
}

}  // namespace idem::fuzz
