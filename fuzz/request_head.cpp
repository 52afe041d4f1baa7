// Request heads. Pieces change nothing; what is accepted keeps to its limits, lies in the buffer,
// says the same after being written out anew, has one framing with just the fields for it, and
// keeps through HopByHop what the gateway relies on, and no framing field.
#include "fuzz/heads.hpp"
#include "fuzz/targets.hpp"

#include <idem/limits.hpp>

namespace idem::fuzz {
namespace {

using http::Framing;
using http::RequestHead;

void check_framing(const RequestHead& head) {
  const auto lengths = count_of(head.fields, "content-length");
  const auto codings = count_of(head.fields, "transfer-encoding");
  switch (head.framing) {
    case Framing::none:
      check(lengths == 0 && codings == 0, "no body needs no framing field");
      break;
    case Framing::content_length:
      check_length_field(head);
      break;
    case Framing::chunked:
      check_coding_field(head);
      break;
    case Framing::until_close:
      check(false, "a request's body has an end");
      break;
  }
  check(head.framing == Framing::content_length || head.content_length == 0,
        "no length without its framing");
}

void check_start(const RequestHead& head, std::string_view bytes) {
  check(http::is_token(head.method) && head.method.size() <= limits::request_method_bytes_max,
        "the method is a short token");
  check(lies_in(head.method, bytes) && lies_in(head.target, bytes) && lies_in(head.host, bytes),
        "the parts lie in the buffer");
  check(head.minor_version == 0 || head.minor_version == 1, "the version is 1.0 or 1.1");
  check(!head.target.empty() &&
            std::ranges::all_of(head.target,
                                [](char c) { return c > ' ' && c < '\x7F' && c != '#'; }),
        "the target is visible and has no fragment");
  check(head.origin_form.starts_with('/') || (head.origin_form == "*" && head.method == "OPTIONS"),
        "what is forwarded has a path");
  check(head.origin_form == "/" || head.origin_form == "*" || head.target == head.origin_form ||
            head.target.ends_with(head.origin_form) ||
            head.target.ends_with(head.origin_form.substr(1)),
        "what is forwarded is the end of the target");
  const auto hosts = count_of(head.fields, "host");
  check(hosts == 1 || (hosts == 0 && head.minor_version == 0), "HTTP/1.1 has one Host");
  if (head.target.starts_with('/')) {
    check(head.host == value_of(head.fields, "host"), "the host is that of the Host field");
  }
}

void check_forwarding(const RequestHead& head) {
  const http::HopByHop hop_by_hop(head.fields);
  for (const http::FieldView& field : head.fields) {
    const auto is = [&](auto... names) { return (http::same_name(field.name, names) || ...); };
    if (is("authorization", "cookie", "host", "idempotency-key")) {
      check(!hop_by_hop.drops(field), "what the gateway relies on is kept");
    }
    if (is("connection", "content-length", "te", "trailer", "transfer-encoding", "upgrade")) {
      check(hop_by_hop.drops(field), "what is for this hop stops here");
    }
  }
}

void check_rewritten(const RequestHead& head) {
  std::string text(head.method);
  for (const std::string_view part :
       {std::string_view(" "), head.target, std::string_view(" HTTP/1.")}) {
    text += part;
  }
  text += head.minor_version == 1 ? "1\r\n" : "0\r\n";
  append_fields(text, head.fields);
  const ExactBytes rewritten(text);
  RequestHead again;
  std::size_t scanned = 0;
  const auto result = http::parse_request_head(rewritten.view(), scanned, again);
  check(is_accepted(result) && **result == text.size(), "what was accepted is accepted rewritten");
  check(describe(again) == describe(head), "rewritten it says the same");
}

}  // namespace

void request_head(std::string_view input) {
  const std::string expanded = with_runs(input);
  check_pieces<RequestHead>(expanded, http::parse_request_head);

  const ExactBytes bytes(expanded);
  RequestHead head;
  std::size_t scanned = 0;
  const auto result = http::parse_request_head(bytes.view(), scanned, head);
  if (!is_accepted(result)) {
    check(describe(head) == describe(RequestHead{}), "nothing is left of what was not accepted");
    return;
  }
  check(**result <= bytes.view().size() && **result <= limits::head_bytes_max,
        "the head ends in the buffer and within the limit");
  check(head.fields.size() <= limits::head_fields_max, "the fields are within the limit");
  const auto read = bytes.view().substr(0, **result);
  check(read.ends_with("\r\n\r\n"), "a head ends with an empty line");
  check_start(head, read);
  check_fields(head.fields, read);
  check_framing(head);
  check_forwarding(head);
  check_rewritten(head);
}

}  // namespace idem::fuzz
