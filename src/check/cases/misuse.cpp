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
    return CaseRun::skip(no_amount);
  }
  const auto sent = run.send(request, "the same key with another amount");
  const auto bad = judge_refusal(run, first->answer, sent, run.profile().misuse,
                                 "The same key with another amount");
  return bad.value_or(CaseRun::pass());
}

/// The API must not answer another request with the stored answer. It may execute that request:
/// some APIs scope keys by operation.
CaseEnd elsewhere(CaseRun& run, const char* what,
                  void (*change)(const Spec&, const Order&, Request&)) {
  auto first = send_first(run);
  if (!first) return first.error();
  Request request = first->request;
  change(run.spec(), first->order, request);
  const auto sent = run.send(request, std::string("the same key and body, another ") + what);
  if (!sent) return CaseRun::skip("The other request received " + shown(sent) + ".");
  if (sent->status == 404 || sent->status == 405 || sent->status >= 500) {
    return CaseRun::skip(std::string("With another ") + what + " the API answered " + shown(sent) +
                         ".");
  }
  const auto is_first = run.is_result_of_first(first->answer, *sent);
  if (sent->is_success() && !is_first) return CaseRun::skip(no_difference);
  if (sent->is_success() && *is_first) {
    return CaseRun::fail(std::string("The same key with another ") + what +
                         " received the answer to the first request: " + shown(sent) + ".");
  }
  return CaseRun::pass();
}

CaseEnd query(CaseRun& run) {
  if (!run.spec().other_query) return CaseRun::skip("`other.query` is not set.");
  return elsewhere(run, "query", [](const Spec& of, const Order& order, Request& request) {
    request.target +=
        (request.target.contains('?') ? '&' : '?') + Api::filled(*of.other_query, order);
  });
}

CaseEnd path(CaseRun& run) {
  if (!run.spec().other_path) return CaseRun::skip("`other.path` is not set.");
  return elsewhere(run, "path", [](const Spec& of, const Order& order, Request& request) {
    request.target = Api::filled(*of.other_path, order);
  });
}

CaseEnd method(CaseRun& run) {
  if (!run.spec().other_method) return CaseRun::skip("`other.method` is not set.");
  return elsewhere(run, "method", [](const Spec& of, const Order&, Request& request) {
    request.method = *of.other_method;
  });
}

CaseEnd scope(CaseRun& run) {
  if (!run.spec().tenant) return CaseRun::skip("`tenant` is not set.");
  auto first = send_first(run);
  if (!first) return first.error();
  Request request = first->request;
  request.set(run.spec().tenant->header, run.spec().tenant->other);
  const auto sent = run.send(request, "another tenant, with the same key and body");
  if (!sent) return CaseRun::skip("The other tenant received " + shown(sent) + ".");
  const auto is_first = run.is_result_of_first(first->answer, *sent);
  if (sent->is_success() && !is_first && !run.has_effects()) return CaseRun::skip(no_difference);
  if (sent->is_success() && is_first.value_or(false)) {
    return CaseRun::fail(
        "Another tenant with the same key received the answer to the first tenant: " + shown(sent) +
        ".");
  }
  if (!sent->is_success()) {
    return CaseRun::fail(
        "The API refused another tenant's request, whose key only the first tenant has used: " +
        shown(sent) + ".");
  }
  const auto executed = run.executed();
  if (run.has_effects() && !run.api().is_dry() && executed && *executed < 2) {
    return CaseRun::fail("Another tenant's request received " + shown(sent) +
                         ", but the API did not execute it, according to `effects`.");
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
    return CaseRun::skip(no_amount);
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
  if (!other)
    return CaseRun::skip("`request.body` is not a JSON object with at least two members.");
  Request request = first->request;
  request.body = *other;
  const auto sent = run.send(request, "the same JSON with its members in another order");
  if (!sent) return CaseRun::skip("The retry received " + shown(sent) + ".");
  if (auto often = ran_too_often(run, 1, "The same JSON in another order")) return *often;
  const bool is_replay = sent->is_success() && is_same_result(run, first->answer, *sent);
  if (run.profile().equal_by_meaning && !is_replay) {
    return CaseRun::fail("The same JSON in another order received " + shown(sent) +
                         "; the profile compares JSON values, not bytes.");
  }
  if (!is_replay && !sent->is_refusal()) {
    return CaseRun::fail("The same JSON in another order received " + shown(sent) + ".");
  }
  return CaseRun::pass(is_replay ? "The API replays the first answer."
                                 : "The API refuses it: clients must repeat the same bytes.");
}

CaseEnd number_form(CaseRun& run) {
  if (!run.profile().equal_by_meaning) {
    return CaseRun::skip("The profile does not define how requests are compared.");
  }
  auto first = send_first(run);
  if (!first) return first.error();
  Order other = first->order;
  other.amount += ".0";
  const auto sent = run.send(run.api().build(other), "the same amount with .0");
  if (!sent) return CaseRun::skip("The retry received " + shown(sent) + ".");
  if (auto often = ran_too_often(run, 1, "The same amount, written with .0,")) return *often;
  if (is_same_result(run, first->answer, *sent)) return CaseRun::pass();
  return CaseRun::fail("The same amount, written with .0, received " + shown(sent) +
                       "; the profile compares JSON values, not bytes.");
}

constexpr std::string_view money_of_misuse =
    "A client mistakes the answer to another payment for its own; its payment is never made.";
constexpr std::string_view mend_misuse =
    "Store a digest of method, target and body with the key, and refuse the key with any other.";

}  // namespace

std::span<const Case> misuse_cases() {
  static constexpr std::array cases{
      Case{{.id = "misuse.body",
            .severity = money,
            .title = "The API refuses a key with another body",
            .reason = "A client that reuses a key by mistake must find out.",
            .source = draft_fingerprint,
            .money = money_of_misuse,
            .mend = mend_misuse},
           &body},
      Case{{.id = "misuse.query",
            .severity = correctness,
            .title = "A request with another query does not receive the stored answer",
            .reason = "The query is part of the request.",
            .source = draft_fingerprint,
            .money = money_of_misuse,
            .mend = mend_misuse},
           &query},
      Case{{.id = "misuse.path",
            .severity = money,
            .title = "A request to another path does not receive the stored answer",
            .reason = "A refund is not a payment, even with the same key.",
            .source = draft_fingerprint,
            .money = money_of_misuse,
            .mend = mend_misuse},
           &path},
      Case{{.id = "misuse.method",
            .severity = correctness,
            .title = "A request with another method does not receive the stored answer",
            .reason = "The method is part of the request.",
            .source = draft_fingerprint,
            .money = money_of_misuse,
            .mend = mend_misuse},
           &method},
      Case{{.id = "scope.other",
            .severity = money,
            .title = "The keys of tenants are independent",
            .reason = "Two tenants may choose the same key.",
            .source = "draft-ietf-httpapi-idempotency-key-header-07, section 5",
            .money = "One tenant reads another tenant's payment, and its own is never made.",
            .mend = "Make the authenticated tenant part of the stored key."},
           &scope},
      Case{{.id = "number.precision",
            .severity = money,
            .title = "Amounts beyond 2^53 are distinguished",
            .reason = "A parser that reads numbers as doubles rounds both amounts to one.",
            .source = "RFC 8259, section 6; RFC 7493, section 2.2",
            .money = "The API accepts a changed amount as a retry.",
            .mend = "Compare the digits as they were sent."},
           &precision},
      Case{{.id = "canonical.order",
            .severity = correctness,
            .title = "The same JSON in another order executes nothing again",
            .reason = "Some clients serialise the body again for a retry.",
            .source = draft_fingerprint,
            .money = "A retry by such a client charges the customer again.",
            .mend = "Replay the answer or refuse the request; a known key executes nothing."},
           &order_of_members},
      Case{{.id = "canonical.number",
            .severity = interoperability,
            .title = "The numbers 1 and 1.0 are equal",
            .reason = "The profile compares JSON values, not bytes.",
            .source = "Agentic Commerce Protocol, checkout RFC, section 6",
            .money = "The API refuses a retry, and the client may send a new key.",
            .mend = "Compare numbers by their value, with all digits."},
           &number_form},
  };
  return cases;
}

}  // namespace idem::check
