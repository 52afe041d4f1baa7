#include "check/cases/cases.hpp"

#include <array>

namespace idem::check {
namespace {

using enum Severity;
using Millis = CaseRun::Millis;

constexpr std::string_view draft = "draft-ietf-httpapi-idempotency-key-header-07, section 1";

CaseEnd judge_settled(CaseRun& run, const CaseRun::Sent& settled, const std::string& story) {
  if (auto often = ran_too_often(run, 1, story + " and its retries")) return *often;
  if (!settled) return CaseRun::skip("The retry received " + shown(settled) + ".");
  if (!settled->is_success()) {
    return CaseRun::fail(story + ": no retry received its result, the last one " + shown(settled) +
                         ".");
  }
  return CaseRun::pass();
}

CaseEnd lost_answer(CaseRun& run) {
  const Request request = run.api().build(run.api().order());
  const auto lost = run.send_and_lose_answer(request, "the first request, whose answer is lost");
  if (!lost)
    return CaseRun::skip("Through the proxy the first request received " + shown(lost) + ".");
  if (!lost->is_success()) {
    return CaseRun::skip("The API did not accept the first request: " + shown(lost) + ".");
  }
  const auto retry = run.until_settled(request, "the client's retry", run.spec().timeout);
  if (auto often = ran_too_often(run, 1, "A request whose answer was lost, and its retry,")) {
    return *often;
  }
  if (!retry) return CaseRun::skip("The retry received " + shown(retry) + ".");
  if (!is_same_result(run, *lost, *retry)) {
    return CaseRun::fail("The lost answer is " + shown(lost) + "; the retry received " +
                         shown(retry) + ".");
  }
  return CaseRun::pass();
}

/// The request that a client leaves: slow if it can be.
Request to_be_left(CaseRun& run) {
  Order order = run.api().order();
  if (run.spec().slow) order.changes = *run.spec().slow;
  return run.api().build(order);
}

CaseEnd client_leaves(CaseRun& run) {
  const Request request = to_be_left(run);
  const auto sent = run.send_and_leave(request.bytes(run.api().origin().authority()),
                                       "the first request; the client leaves at once", false);
  if (!sent) return CaseRun::skip("The request could not be sent: " + sent.error() + ".");
  const auto settled =
      run.until_settled(request, "the client's retry", run.spec().timeout + Millis(2'000));
  // The operation of the first request may still run, and end after the retry's.
  const auto again = run.until_settled(request, "a later retry", run.spec().timeout);
  wait_for_left_operation(run);
  auto end = judge_settled(run, again ? again : settled, "A request whose client left");
  // An operation of a few milliseconds may have ended before its client left.
  if (end.outcome == Outcome::pass && !run.spec().slow) return CaseRun::skip(no_slow);
  return end;
}

CaseEnd client_leaves_reading(CaseRun& run) {
  const Request request = run.api().build(run.api().order());
  const auto sent =
      run.send_and_leave(request.bytes(run.api().origin().authority()),
                         "the first request; the client leaves within the answer", true);
  if (!sent) return CaseRun::skip("The request could not be sent: " + sent.error() + ".");
  const auto settled = run.until_settled(request, "the client's retry", run.spec().timeout);
  return judge_settled(run, settled, "A request whose client left within the answer");
}

CaseEnd cut(CaseRun& run, bool in_head) {
  const Request request = run.api().build(run.api().order());
  const std::string bytes = request.bytes(run.api().origin().authority());
  const auto body = bytes.size() - request.body.size();
  if (!in_head && request.body.size() < 2) return CaseRun::skip("`request.body` is not set.");
  const std::size_t at = in_head ? body - 6 : body + request.body.size() / 2;
  const auto sent =
      run.send_and_leave(std::string_view(bytes).substr(0, at),
                         in_head ? "half of the head" : "the head and half of the body", false);
  if (!sent) return CaseRun::skip("The request could not be sent: " + sent.error() + ".");
  const auto whole = run.until_settled(request, "the complete request", Millis(3'000));
  const std::string story =
      std::string("A request with an incomplete ") + (in_head ? "head" : "body");
  if (auto often = ran_too_often(run, 1, story + " and the complete one")) return *often;
  if (!whole) return CaseRun::skip("The complete request received " + shown(whole) + ".");
  if (!whole->is_success()) {
    return CaseRun::fail(story + " blocks its key: the complete one received " + shown(whole) +
                         ".");
  }
  return CaseRun::pass();
}

CaseEnd cut_body(CaseRun& run) { return cut(run, false); }
CaseEnd cut_head(CaseRun& run) { return cut(run, true); }

}  // namespace

std::span<const Case> loss_cases() {
  static constexpr std::array cases{
      Case{{.id = "ambiguous.success",
            .severity = money,
            .title = "A retry after a lost answer receives that answer",
            .reason = "This is what keys are for: the API has executed the operation, and its "
                      "client does not know.",
            .source = draft,
            .money = "The client pays again, or never learns that it has paid.",
            .mend = "Store the answer with the result before sending its first byte."},
           &lost_answer},
      Case{{.id = "abort.client",
            .severity = money,
            .title = "The API keeps the key when the client disconnects during the operation",
            .reason = "Clients time out while the operation runs, and retry.",
            .source = draft,
            .money = "The operation goes on without its key, and the retry charges again.",
            .mend = "Keep the key until the operation has ended, also without a client."},
           &client_leaves},
      Case{{.id = "abort.reading",
            .severity = money,
            .title = "The API keeps the answer when the client disconnects while reading it",
            .reason = "Networks cut answers.",
            .source = draft,
            .money = "The client pays again, or never learns that it has paid.",
            .mend = "Store the answer before sending it, not after the client has read it."},
           &client_leaves_reading},
      Case{{.id = "abort.body",
            .severity = money,
            .title = "The API does not execute a request with an incomplete body",
            .reason = "A connection that ends within the body carries no request.",
            .source = "RFC 9112, section 8",
            .money = "The API executes an incomplete order, or its key blocks the complete one.",
            .mend = "Reserve the key after the whole body has arrived."},
           &cut_body},
      Case{{.id = "abort.head",
            .severity = correctness,
            .title = "The API does not execute a request with an incomplete head",
            .reason = "A connection that ends within the head carries no request.",
            .source = "RFC 9112, section 8",
            .money = "The key blocks the complete request.",
            .mend = "Reserve the key after the whole request has arrived."},
           &cut_head},
  };
  return cases;
}

}  // namespace idem::check
