#include "check/cases/cases.hpp"

#include <array>

namespace idem::check {
namespace {

using enum Severity;
using Millis = CaseRun::Millis;

constexpr std::string_view draft = "draft-ietf-httpapi-idempotency-key-header-07, section 1";

CaseEnd judge_settled(CaseRun& run, const CaseRun::Sent& settled, const std::string& story) {
  if (auto often = ran_too_often(run, 1, story + " and its retries")) return *often;
  if (!settled) return CaseRun::skip("The retry got " + shown(settled) + ".");
  if (!settled->is_success()) {
    return CaseRun::fail(story + ": the retries never get an answer: " + shown(settled) + ".");
  }
  return CaseRun::pass();
}

CaseEnd lost_answer(CaseRun& run) {
  const Request request = run.api().build(run.api().order());
  const auto lost = run.send_and_lose_answer(request, "the first request, whose answer is lost");
  if (!lost) return CaseRun::skip("Behind the proxy the request got " + shown(lost) + ".");
  if (!lost->is_success()) {
    return CaseRun::skip("The first request was not accepted: " + shown(lost) + ".");
  }
  const auto retry = run.until_settled(request, "the client's retry", run.spec().timeout);
  if (auto often = ran_too_often(run, 1, "A request whose answer was lost, and its retry,")) {
    return *often;
  }
  if (!retry) return CaseRun::skip("The retry got " + shown(retry) + ".");
  if (!is_same_result(run, *lost, *retry)) {
    return CaseRun::fail("The answer that was lost is " + shown(lost) + "; the retry got " +
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
  // The work of the first may still run and end behind the retry's.
  const auto again = run.until_settled(request, "a later retry", run.spec().timeout);
  wait_for_left_work(run);
  return judge_settled(run, again ? again : settled, "A request whose client left");
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
  if (!in_head && request.body.size() < 2) return CaseRun::skip("The request has no body.");
  const std::size_t at = in_head ? body - 6 : body + request.body.size() / 2;
  const auto sent =
      run.send_and_leave(std::string_view(bytes).substr(0, at),
                         in_head ? "half of the head" : "the head and half of the body", false);
  if (!sent) return CaseRun::skip("The request could not be sent: " + sent.error() + ".");
  const auto whole = run.until_settled(request, "the whole request", Millis(3'000));
  const std::string story =
      std::string("A request that was cut in its ") + (in_head ? "head" : "body");
  if (auto often = ran_too_often(run, 1, story + ", and the whole one")) return *often;
  if (!whole) return CaseRun::skip("The whole request got " + shown(whole) + ".");
  if (!whole->is_success()) {
    return CaseRun::fail(story + " keeps the whole one from running: " + shown(whole) + ".");
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
            .title = "A retry behind a lost answer gets that answer",
            .reason = "It is what keys are for: the work was done, and only the API knows.",
            .source = draft,
            .money = "The client pays again, or never learns that it has paid.",
            .mend = "Store the answer with the work, before a byte of it is sent."},
           &lost_answer},
      Case{{.id = "abort.client",
            .severity = money,
            .title = "A client that leaves changes nothing",
            .reason = "Clients time out while the work runs, and send it again.",
            .source = draft,
            .money = "The work that goes on without its key is paid once more.",
            .mend = "Keep the key until the work has ended, also without a client."},
           &client_leaves},
      Case{{.id = "abort.reading",
            .severity = money,
            .title = "A client that leaves within the answer changes nothing",
            .reason = "The network ends answers in the middle.",
            .source = draft,
            .money = "The client pays again, or never learns that it has paid.",
            .mend = "Store the answer before it is sent, and not once it was read."},
           &client_leaves_reading},
      Case{{.id = "abort.body",
            .severity = money,
            .title = "Half a body is no request",
            .reason = "A connection that ends within the body leaves nothing to work on.",
            .source = "RFC 9112, section 8",
            .money = "The cut request runs, or its key keeps the whole one from running.",
            .mend = "Reserve the key once the whole body is there."},
           &cut_body},
      Case{{.id = "abort.head",
            .severity = correctness,
            .title = "Half a head is no request",
            .reason = "A connection that ends within the head leaves nothing to work on.",
            .source = "RFC 9112, section 8",
            .money = "The key keeps the whole request from running.",
            .mend = "Reserve the key once the whole request is there."},
           &cut_head},
  };
  return cases;
}

}  // namespace idem::check
