// Response heads. Pieces change nothing; what is accepted lies in the buffer, says the same after
// being written out anew, and has one framing with just the fields for it. The answer to a HEAD is
// accepted whenever that to a GET is, with the same fields and no body.
#include "fuzz/heads.hpp"
#include "fuzz/targets.hpp"

#include <idem/limits.hpp>

namespace idem::fuzz {
namespace {

using http::Framing;
using http::ResponseHead;

auto parser_for(std::string_view method) {
  return [method](std::string_view bytes, std::size_t& scanned, ResponseHead& head) {
    return http::parse_response_head(bytes, scanned, method, head);
  };
}

bool has_body(const ResponseHead& head, std::string_view method) {
  return method != "HEAD" && head.status >= 200 && head.status != 204 && head.status != 304;
}

void check_framing(const ResponseHead& head, std::string_view method) {
  const auto lengths = count_of(head.fields, "content-length");
  const auto codings = count_of(head.fields, "transfer-encoding");
  check(has_body(head, method) == (head.framing != Framing::none), "status and method decide");
  switch (head.framing) {
    case Framing::none:
      break;
    case Framing::content_length:
      check_length_field(head);
      break;
    case Framing::chunked:
      check_coding_field(head);
      break;
    case Framing::until_close:
      check(lengths == 0 && codings == 0 && !head.keep_alive,
            "without a framing field the connection ends the body");
      break;
  }
}

void check_rewritten(const ResponseHead& head, std::string_view method) {
  std::string text = "HTTP/1." + std::to_string(head.minor_version) + ' ';
  text += std::to_string(head.status);
  if (!head.reason.empty()) {
    text += ' ';
    text += head.reason;
  }
  text += "\r\n";
  append_fields(text, head.fields);
  const ExactBytes rewritten(text);
  ResponseHead again;
  std::size_t scanned = 0;
  const auto result = http::parse_response_head(rewritten.view(), scanned, method, again);
  check(is_accepted(result) && **result == text.size(), "what was accepted is accepted rewritten");
  check(describe(again) == describe(head), "rewritten it says the same");
}

http::HeadResult check_answer_to(std::string_view method, std::string_view bytes,
                                 ResponseHead& head) {
  std::size_t scanned = 0;
  const auto result = http::parse_response_head(bytes, scanned, method, head);
  if (!result) check(result.error().status == 502, "what an upstream does wrong is a 502");
  if (!is_accepted(result)) {
    check(describe(head) == describe(ResponseHead{}), "nothing is left of what was not accepted");
    return result;
  }
  check(**result <= bytes.size() && **result <= limits::head_bytes_max,
        "the head ends in the buffer and within the limit");
  check(head.fields.size() <= limits::head_fields_max, "the fields are within the limit");
  check(head.status >= 100 && head.status <= 599, "the status has a class");
  const auto read = bytes.substr(0, **result);
  check(lies_in(head.reason, read), "the reason lies in the buffer");
  check_fields(head.fields, read);
  check_framing(head, method);
  check_rewritten(head, method);
  return result;
}

}  // namespace

void response_head(std::string_view input) {
  const std::string expanded = with_runs(input);
  const bool is_head = Pieces(input).position(1) == 1;
  check_pieces<ResponseHead>(expanded, parser_for(is_head ? "HEAD" : "GET"));

  const ExactBytes bytes(expanded);
  ResponseHead head;
  ResponseHead head_of_head;
  const auto result = check_answer_to("GET", bytes.view(), head);
  const auto result_of_head = check_answer_to("HEAD", bytes.view(), head_of_head);
  if (!is_accepted(result)) return;
  check(same_verdict(result, result_of_head), "the answer to a HEAD needs no more");
  head_of_head.framing = head.framing;
  head_of_head.content_length = head.content_length;
  head_of_head.keep_alive = head.keep_alive;
  check(describe(head_of_head) == describe(head), "the answer to a HEAD has the same fields");
}

}  // namespace idem::fuzz
