#include "check/cases/cases.hpp"

#include <array>

namespace idem::check {
namespace {

using enum Severity;

constexpr std::string_view draft_fingerprint =
    "draft-ietf-httpapi-idempotency-key-header-07, sections 2.4 and 2.7";

std::string another_amount(const std::string& amount) {
  return std::to_string(std::stoll(amount) + 1);
}

CaseEnd body(CaseRun& run) {
  auto first = send_first(run);
  if (!first) return first.error();
  Order other = first->order;
  other.amount = another_amount(other.amount);
  const Request request = run.api().build(other);
  if (request.body == first->request.body) {
    return CaseRun::skip("The body has no {{amount}}, so nothing in it can differ.");
  }
  const auto sent = run.send(request, "the same key with another amount");
  const auto bad = judge_refusal(run, first->answer, sent, run.profile().misuse,
                                 "The same key with another amount");
  return bad.value_or(CaseRun::pass());
}

/// The stored answer must not go to a request for something else; what else the API does with it is
/// its own affair: keys may be kept apart by operation.
CaseEnd elsewhere(CaseRun& run, const char* what, void (*change)(CaseRun&, Request&)) {
  auto first = send_first(run);
  if (!first) return first.error();
  Request request = first->request;
  change(run, request);
  const auto sent = run.send(request, std::string("the same key and body, another ") + what);
  if (!sent) return CaseRun::skip("The other request got " + shown(sent) + ".");
  if (sent->is_success() && is_same_answer(first->answer, *sent)) {
    return CaseRun::fail(std::string("The same key with another ") + what +
                         " got the answer to the first request: " + shown(sent) + ".");
  }
  return CaseRun::pass();
}

CaseEnd query(CaseRun& run) {
  if (!run.spec().other_query) return CaseRun::skip("The file names no `other: {query: ...}`.");
  return elsewhere(run, "query", [](CaseRun& of, Request& request) {
    request.target += (request.target.contains('?') ? '&' : '?') + *of.spec().other_query;
  });
}

CaseEnd path(CaseRun& run) {
  if (!run.spec().other_path) return CaseRun::skip("The file names no `other: {path: ...}`.");
  return elsewhere(run, "path",
                   [](CaseRun& of, Request& request) { request.target = *of.spec().other_path; });
}

CaseEnd method(CaseRun& run) {
  if (!run.spec().other_method) return CaseRun::skip("The file names no `other: {method: ...}`.");
  return elsewhere(run, "method",
                   [](CaseRun& of, Request& request) { request.method = *of.spec().other_method; });
}

CaseEnd scope(CaseRun& run) {
  if (!run.spec().tenant) return CaseRun::skip("The file names no `tenant`.");
  auto first = send_first(run);
  if (!first) return first.error();
  Request request = first->request;
  request.set(run.spec().tenant->header, run.spec().tenant->other);
  const auto sent = run.send(request, "another tenant, with the same key and body");
  if (!sent) return CaseRun::skip("The other tenant got " + shown(sent) + ".");
  if (sent->is_success() && is_same_answer(first->answer, *sent)) {
    return CaseRun::fail(
        "Another tenant with the same key got the first tenant's answer: " + shown(sent) + ".");
  }
  if (!sent->is_success()) {
    return CaseRun::fail(
        "Another tenant's request was not accepted because of a key that it did "
        "not use before: " +
        shown(sent) + ".");
  }
  const auto executed = run.executed();
  if (run.has_books() && !run.api().is_dry() && executed && *executed < 2) {
    return CaseRun::fail("Another tenant's request was answered " + shown(sent) +
                         ", and its work did not run.");
  }
  return CaseRun::pass();
}

/// Beyond 2^53 a double has no odd numbers.
CaseEnd precision(CaseRun& run) {
  Order order = run.api().order();
  order.amount = "9007199254740993";
  auto first = send_first(run, order);
  if (!first) return first.error();
  if (!first->request.body.contains(order.amount)) {
    return CaseRun::skip("The body has no {{amount}}.");
  }
  Order other = order;
  other.amount = "9007199254740992";
  const auto sent = run.send(run.api().build(other), "the same key, the amount less by one");
  const auto bad = judge_refusal(run, first->answer, sent, run.profile().misuse,
                                 "The same key with 9007199254740992 in place of "
                                 "9007199254740993");
  return bad.value_or(CaseRun::pass());
}

/// `{"a":1,"b":2}` as `{ "b":2, "a":1 }`; none: the body is no such object.
std::optional<std::string> reordered(const std::string& body) {
  if (!check_json(body)) return std::nullopt;
  const auto from = body.find_first_not_of(" \t\r\n");
  if (from == std::string::npos || body[from] != '{') return std::nullopt;
  const std::string inner = body.substr(from + 1, body.find_last_of('}') - from - 1);
  int depth = 0;
  bool is_text = false;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    const char c = inner[i];
    if (is_text) {
      if (c == '\\') ++i;
      is_text = c != '"';
    } else if (c == '"') {
      is_text = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      return "{ " + inner.substr(i + 1) + " , " + inner.substr(0, i) + " }";
    }
  }
  return std::nullopt;
}

CaseEnd order_of_members(CaseRun& run) {
  auto first = send_first(run);
  if (!first) return first.error();
  const auto other = reordered(first->request.body);
  if (!other) return CaseRun::skip("The body is no JSON object with two members.");
  Request request = first->request;
  request.body = *other;
  const auto sent = run.send(request, "the same JSON with its members in another order");
  if (!sent) return CaseRun::skip("The retry got " + shown(sent) + ".");
  if (auto often = ran_too_often(run, 1, "The same JSON in another order")) return *often;
  const bool is_replay = sent->is_success() && is_same_result(run, first->answer, *sent);
  if (run.profile().equal_by_meaning && !is_replay) {
    return CaseRun::fail("The same JSON in another order got " + shown(sent) +
                         ", and the profile compares JSON by its meaning.");
  }
  if (!is_replay && !sent->is_refusal()) {
    return CaseRun::fail("The same JSON in another order got " + shown(sent) + ".");
  }
  return CaseRun::pass(is_replay ? "It is a replay."
                                 : "It is refused: a client repeats its bytes.");
}

CaseEnd number_form(CaseRun& run) {
  if (!run.profile().equal_by_meaning) {
    return CaseRun::skip("The profile leaves the comparison to the API.");
  }
  auto first = send_first(run);
  if (!first) return first.error();
  Order other = first->order;
  other.amount += ".0";
  const auto sent = run.send(run.api().build(other), "the same amount with .0");
  if (!sent) return CaseRun::skip("The retry got " + shown(sent) + ".");
  if (auto often = ran_too_often(run, 1, "The same amount, written with .0,")) return *often;
  if (is_same_answer(first->answer, *sent)) return CaseRun::pass();
  return CaseRun::fail("The same amount, written with .0, got " + shown(sent) +
                       ", and the profile compares JSON by its meaning.");
}

constexpr std::string_view money_of_misuse =
    "A client takes the answer to another payment for the answer to its own: one of them is never "
    "made.";
constexpr std::string_view mend_misuse =
    "Store a digest of method, target and body with the key; refuse the key with any other.";

}  // namespace

std::span<const Case> misuse_cases() {
  static constexpr std::array cases{
      Case{{.id = "misuse.body",
            .severity = money,
            .title = "A key with another body is refused",
            .reason = "A client that uses a key twice by mistake must learn it.",
            .source = draft_fingerprint,
            .money = money_of_misuse,
            .mend = mend_misuse},
           &body},
      Case{{.id = "misuse.query",
            .severity = correctness,
            .title = "A stored answer belongs to its query",
            .reason = "The query is part of what was asked.",
            .source = draft_fingerprint,
            .money = money_of_misuse,
            .mend = mend_misuse},
           &query},
      Case{{.id = "misuse.path",
            .severity = money,
            .title = "A stored answer belongs to its path",
            .reason = "A refund is no payment, also under the same key.",
            .source = draft_fingerprint,
            .money = money_of_misuse,
            .mend = mend_misuse},
           &path},
      Case{{.id = "misuse.method",
            .severity = correctness,
            .title = "A stored answer belongs to its method",
            .reason = "The method is part of what was asked.",
            .source = draft_fingerprint,
            .money = money_of_misuse,
            .mend = mend_misuse},
           &method},
      Case{{.id = "scope.other",
            .severity = money,
            .title = "Tenants have their keys to themselves",
            .reason = "Two tenants may choose the same key.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 5",
            .money = "One tenant reads another tenant's payment, and its own is never made.",
            .mend = "Make the authenticated tenant part of the stored key."},
           &scope},
      Case{{.id = "number.precision",
            .severity = money,
            .title = "Amounts beyond 2^53 stay apart",
            .reason = "A parser that reads numbers as doubles makes one of two amounts.",
            .source = "RFC 8259, section 6; RFC 7493, section 2.2",
            .money = "A changed amount passes as a retry.",
            .mend = "Compare the digits as they were sent."},
           &precision},
      Case{{.id = "canonical.order",
            .severity = correctness,
            .title = "The same JSON in another order runs nothing",
            .reason = "Some clients build their body anew at a retry.",
            .source = draft_fingerprint,
            .money = "A retry by such a client is another charge.",
            .mend = "Replay it or refuse it; the key alone decides that nothing runs."},
           &order_of_members},
      Case{{.id = "canonical.number",
            .severity = interoperability,
            .title = "1 and 1.0 are one number",
            .reason = "The profile compares JSON by its meaning.",
            .source = "Agentic Commerce Protocol, checkout RFC, section 6",
            .money = "A retry is refused, and the client may send a new key.",
            .mend = "Compare numbers by their value, with all digits."},
           &number_form},
  };
  return cases;
}

}  // namespace idem::check
