#include "check/cases/cases.hpp"

#include <algorithm>
#include <array>

namespace idem::check {
namespace {

using enum Severity;

constexpr std::string_view draft_replay =
    "draft-ietf-httpapi-idempotency-key-header-07, section 2.6";
constexpr std::string_view stripe_replay = "Stripe API reference, Idempotent requests";

/// A first request and its retry.
struct Pair {
  First first;
  Answer retry;
};

std::expected<Pair, CaseEnd> sent_twice(CaseRun& run) {
  auto first = send_first(run);
  if (!first) return std::unexpected(std::move(first.error()));
  auto retry = run.send(first->request, "its retry");
  if (!retry) return std::unexpected(CaseRun::skip("The retry received " + shown(retry) + "."));
  return Pair{std::move(*first), std::move(*retry)};
}

/// Of cases that look at a replay: there is one.
std::expected<Pair, CaseEnd> replayed(CaseRun& run) {
  auto pair = sent_twice(run);
  if (!pair) return pair;
  const auto executed = run.executed();
  if (!pair->retry.is_success() || (executed && *executed > 1)) {
    return std::unexpected(
        CaseRun::skip("The retry received no replay: see `replay.effect` and "
                      "`replay.identical`."));
  }
  return pair;
}

CaseEnd effect(CaseRun& run) {
  auto pair = sent_twice(run);
  if (!pair) return pair.error();
  auto third = run.send(pair->first.request, "a second retry");
  if (auto often = ran_too_often(run, 1, "The same request, sent 3 times,")) return *often;
  const auto executed = run.executed();
  if (run.has_effects() && !run.api().is_dry() && executed && *executed == 0) {
    return CaseRun::skip(
        "`effects` did not change with the first request: does it count these operations?");
  }
  return CaseRun::pass();
}

CaseEnd identical(CaseRun& run) {
  auto pair = sent_twice(run);
  if (!pair) return pair.error();
  const auto executed = run.executed();
  if (run.has_effects() && executed && *executed > 1) {
    return CaseRun::skip("The retry executed the operation again: see `replay.effect`.");
  }
  if (!is_same_answer(pair->first.answer, pair->retry)) {
    const std::string id = run.resource_of(pair->first.answer);
    const std::string other = run.resource_of(pair->retry);
    if (!run.has_effects() && !id.empty() && !other.empty() && id != other) {
      return CaseRun::skip("The retry has another id: see `replay.effect`.");
    }
    return CaseRun::fail("The first request received " + shown(pair->first.answer) +
                         ", and its retry " + shown(pair->retry) + ".");
  }
  return CaseRun::pass();
}

CaseEnd headers(CaseRun& run) {
  auto pair = replayed(run);
  if (!pair) return pair.error();
  static constexpr std::array<std::string_view, 4> compared{"Content-Type", "Location",
                                                            "Content-Language", "ETag"};
  for (const auto name : compared) {
    const auto first = pair->first.answer.all(name);
    const auto retry = pair->retry.all(name);
    if (first == retry) continue;
    // Other bytes have another tag, and replay.identical has reported them.
    if (name == "ETag" && pair->first.answer.body != pair->retry.body) continue;
    const auto text = [](const std::vector<std::string>& values) {
      return values.empty() ? std::string("missing") : '"' + values.front() + '"';
    };
    return CaseRun::fail('`' + std::string(name) + "` is " + text(first) +
                         " in the first answer and " + text(retry) + " in the replay.");
  }
  return CaseRun::pass();
}

CaseEnd length(CaseRun& run) {
  auto pair = sent_twice(run);
  if (!pair) {
    // A wrong length keeps the retry from being read at all.
    const auto& calls = run.calls();
    const bool is_cut =
        calls.size() == 2 && calls[0].failure.empty() && calls[1].failure.contains("body");
    if (!is_cut) return pair.error();
    return CaseRun::fail("The `Content-Length` of the replay differs from the size of its body: " +
                         calls[1].failure + ".");
  }
  const Answer& retry = pair->retry;
  const auto lengths = retry.all("Content-Length");
  const std::size_t body_bytes = retry.bytes.size() - retry.body_from;
  if (lengths.size() > 1) return CaseRun::fail("The replay has more than one `Content-Length`.");
  if (retry.length && !run.api().is_dry() && body_bytes != *retry.length &&
      retry.find("Transfer-Encoding") == nullptr) {
    return CaseRun::fail("The `Content-Length` of the replay is " + std::to_string(*retry.length) +
                         ", and its body has " + std::to_string(body_bytes) + " bytes.");
  }
  if (retry.length && retry.find("Transfer-Encoding") != nullptr) {
    return CaseRun::fail("The replay has both `Content-Length` and `Transfer-Encoding`.");
  }
  return CaseRun::pass();
}

CaseEnd cookie(CaseRun& run) {
  auto pair = replayed(run);
  if (!pair) return pair.error();
  const auto first = pair->first.answer.all("Set-Cookie");
  if (first.empty()) return CaseRun::skip("The first answer sets no cookie.");
  std::optional<std::vector<std::string>> of_all;
  for (const std::string& value : pair->retry.all("Set-Cookie")) {
    if (std::ranges::find(first, value) == first.end()) continue;
    // A load balancer gives all clients the same cookie; that one is not stored.
    if (!of_all) {
      const auto other = run.send(run.api().build(run.api().order()), "another first request");
      if (!other) return CaseRun::skip("Another request received " + shown(other) + ".");
      of_all = other->all("Set-Cookie");
    }
    if (std::ranges::find(*of_all, value) == of_all->end()) {
      return CaseRun::fail("The replay repeats the `Set-Cookie` of the first answer.");
    }
  }
  return CaseRun::pass();
}

CaseEnd marker(CaseRun& run) {
  const std::string& wanted = run.profile().marker;
  if (wanted.empty()) return CaseRun::skip("The profile has no field that marks replays.");
  auto pair = replayed(run);
  if (!pair) return pair.error();
  const auto colon = wanted.find(':');
  const std::string name = wanted.substr(0, colon);
  const std::string value = wanted.substr(std::min(colon + 2, wanted.size()));
  const auto has = [&](const Answer& answer) {
    const std::string* const found = answer.find(name);
    return found != nullptr && *found == value;
  };
  if (has(pair->first.answer)) return CaseRun::fail("The first answer also has `" + wanted + "`.");
  if (!has(pair->retry)) return CaseRun::fail("The replay has no `" + wanted + "`.");
  return CaseRun::pass();
}

CaseEnd echo(CaseRun& run) {
  if (!run.profile().echoes_key)
    return CaseRun::skip("The profile does not require answers to contain the key.");
  auto pair = replayed(run);
  if (!pair) return pair.error();
  for (const Answer* answer : {&pair->first.answer, &pair->retry}) {
    const std::string* const found = answer->find(run.spec().key_header);
    if (found == nullptr || *found != run.api().written(pair->first.order.key)) {
      return CaseRun::fail(std::string("The ") +
                           (answer == &pair->retry ? "replay" : "first answer") +
                           " does not contain the key in `" + run.spec().key_header + "`.");
    }
  }
  return CaseRun::pass();
}

}  // namespace

std::span<const Case> replay_cases() {
  static constexpr std::array cases{
      Case{{.id = "replay.effect",
            .severity = money,
            .title = "A retry does not execute the operation again",
            .reason = "A client that received no answer has no choice but to retry.",
            .source = draft_replay,
            .money = "Every retry charges the customer again.",
            .mend = "Store the key with the result, and look the key up before executing the "
                    "operation."},
           &effect},
      Case{{.id = "replay.identical",
            .severity = correctness,
            .title = "A retry receives the first answer, byte for byte",
            .reason = "A client whose answer was lost needs its status and its ids.",
            .source = draft_replay,
            .money = "A client may conclude from a different answer that a paid order is unpaid.",
            .mend = "Store the status and the body as they were sent, and replay these bytes."},
           &identical},
      Case{{.id = "replay.headers",
            .severity = correctness,
            .title = "A replay has the header fields that describe its body",
            .reason = "Without Content-Type and Location a client cannot use the answer.",
            .source = "RFC 9110, sections 8.3 and 10.2.2",
            .money = "A client that cannot use the answer may send the order again.",
            .mend = "Store the header fields that describe the answer with its body."},
           &headers},
      Case{{.id = "replay.length",
            .severity = correctness,
            .title = "A replay has the length of its own body",
            .reason = "A wrong Content-Length cuts the answer, or mixes it with the next one.",
            .source = "RFC 9112, section 6.3",
            .money = "A client may read the answer to another payment on the same connection.",
            .mend = "Compute Content-Length from the bytes that are sent; do not store it."},
           &length},
      Case{{.id = "replay.cookie",
            .severity = correctness,
            .title = "A replay does not repeat the cookie of the first answer",
            .reason = "A stored cookie may belong to a session that has ended, or to another one.",
            .source = "RFC 6265, section 4.1",
            .money = "A client that sends the retry may receive the session of another client.",
            .mend = "Do not store Set-Cookie."},
           &cookie},
      Case{{.id = "replay.marker",
            .severity = courtesy,
            .title = "A replay is marked as one",
            .reason = "Clients and operators distinguish a new charge from a replay by the field.",
            .source = stripe_replay,
            .money = "None; clients cannot see that a retry was free of charge.",
            .mend = "Add the profile's field to replays only."},
           &marker},
      Case{{.id = "key.echo",
            .severity = interoperability,
            .title = "Each answer contains its key",
            .reason = "Agents match answers to their orders by the key.",
            .source = "Agentic Commerce Protocol, checkout RFC, section 6",
            .money = "None.",
            .mend = "Copy the key into the header field of the answer."},
           &echo},
  };
  return cases;
}

}  // namespace idem::check
