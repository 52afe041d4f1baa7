#include "check/cases/cases.hpp"

#include <algorithm>
#include <array>

namespace idem::check {
namespace {

using enum Severity;

constexpr std::string_view draft_replay =
    "draft-ietf-httpapi-idempotency-key-header-07, section 2.6";
constexpr std::string_view stripe_replay = "Stripe API reference, Idempotent requests";

/// A first request and its retry, of which the work ran once.
struct Pair {
  First first;
  Answer retry;
};

std::expected<Pair, CaseEnd> sent_twice(CaseRun& run) {
  auto first = send_first(run);
  if (!first) return std::unexpected(std::move(first.error()));
  auto retry = run.send(first->request, "its retry");
  if (!retry) return std::unexpected(CaseRun::skip("The retry got " + shown(retry) + "."));
  return Pair{std::move(*first), std::move(*retry)};
}

/// Of cases that look at a replay: there is one.
std::expected<Pair, CaseEnd> replayed(CaseRun& run) {
  auto pair = sent_twice(run);
  if (!pair) return pair;
  const auto executed = run.executed();
  if (!pair->retry.is_success() || (executed && *executed > 1)) {
    return std::unexpected(
        CaseRun::skip("The retry got no replay: see replay.effect and "
                      "replay.identical."));
  }
  return pair;
}

CaseEnd effect(CaseRun& run) {
  auto pair = sent_twice(run);
  if (!pair) return pair.error();
  auto third = run.send(pair->first.request, "a second retry");
  if (auto often = ran_too_often(run, 1, "The same request, sent three times,")) return *often;
  const auto executed = run.executed();
  if (run.has_books() && !run.api().is_dry() && executed && *executed == 0) {
    return CaseRun::skip(
        "The effects did not change with the first request: is it the right "
        "counter?");
  }
  return CaseRun::pass();
}

CaseEnd identical(CaseRun& run) {
  auto pair = sent_twice(run);
  if (!pair) return pair.error();
  const auto executed = run.executed();
  if (run.has_books() && executed && *executed > 1) {
    return CaseRun::skip("The retry ran the work again: see replay.effect.");
  }
  if (!is_same_answer(pair->first.answer, pair->retry)) {
    const std::string id = run.resource_of(pair->first.answer);
    const std::string other = run.resource_of(pair->retry);
    if (!run.has_books() && !id.empty() && !other.empty() && id != other) {
      return CaseRun::skip("The retry made something else: see replay.effect.");
    }
    return CaseRun::fail("The first request got " + shown(pair->first.answer) + ", and its retry " +
                         shown(pair->retry) + ".");
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
    // A tag of other bytes is another one, and replay.identical has said so.
    if (name == "ETag" && pair->first.answer.body != pair->retry.body) continue;
    const auto text = [](const std::vector<std::string>& values) {
      return values.empty() ? std::string("none") : '"' + values.front() + '"';
    };
    return CaseRun::fail("The first answer has " + text(first) + " as " + std::string(name) +
                         ", and the replay " + text(retry) + ".");
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
    return CaseRun::fail(
        "The replay says another Content-Length than its body has: " + calls[1].failure + ".");
  }
  const Answer& retry = pair->retry;
  const auto lengths = retry.all("Content-Length");
  const auto head = retry.bytes.find("\r\n\r\n");
  if (lengths.size() > 1) return CaseRun::fail("The replay has two Content-Length fields.");
  if (retry.length && head != std::string::npos && retry.bytes.size() - head - 4 != *retry.length &&
      retry.find("Transfer-Encoding") == nullptr) {
    return CaseRun::fail("The replay says Content-Length: " + std::to_string(*retry.length) +
                         ", and its body has " + std::to_string(retry.bytes.size() - head - 4) +
                         " bytes.");
  }
  if (retry.length && retry.find("Transfer-Encoding") != nullptr) {
    return CaseRun::fail("The replay has Content-Length and Transfer-Encoding.");
  }
  return CaseRun::pass();
}

CaseEnd cookie(CaseRun& run) {
  auto pair = replayed(run);
  if (!pair) return pair.error();
  const auto first = pair->first.answer.all("Set-Cookie");
  if (first.empty()) return CaseRun::skip("The first answer sets no cookie.");
  for (const std::string& value : pair->retry.all("Set-Cookie")) {
    if (std::ranges::find(first, value) != first.end()) {
      return CaseRun::fail("The replay sets the cookie of the first answer again.");
    }
  }
  return CaseRun::pass();
}

CaseEnd marker(CaseRun& run) {
  const std::string& wanted = run.profile().marker;
  if (wanted.empty()) return CaseRun::skip("The profile knows no such field.");
  auto pair = replayed(run);
  if (!pair) return pair.error();
  const auto colon = wanted.find(':');
  const std::string name = wanted.substr(0, colon);
  const std::string value = wanted.substr(std::min(colon + 2, wanted.size()));
  const auto has = [&](const Answer& answer) {
    const std::string* const found = answer.find(name);
    return found != nullptr && *found == value;
  };
  if (has(pair->first.answer)) return CaseRun::fail("The first answer says " + wanted + ", too.");
  if (!has(pair->retry)) return CaseRun::fail("The replay has no field " + wanted + ".");
  return CaseRun::pass();
}

CaseEnd echo(CaseRun& run) {
  if (!run.profile().echoes_key) return CaseRun::skip("The profile does not ask for it.");
  auto pair = replayed(run);
  if (!pair) return pair.error();
  for (const Answer* answer : {&pair->first.answer, &pair->retry}) {
    const std::string* const found = answer->find(run.spec().key_header);
    if (found == nullptr || *found != run.api().written(pair->first.order.key)) {
      return CaseRun::fail(std::string("The ") +
                           (answer == &pair->retry ? "replay" : "first answer") +
                           " does not name the key.");
    }
  }
  return CaseRun::pass();
}

}  // namespace

std::span<const Case> replay_cases() {
  static constexpr std::array cases{
      Case{{.id = "replay.effect",
            .severity = money,
            .title = "A retry runs nothing again",
            .reason = "A client that got no answer can only send its request again.",
            .source = draft_replay,
            .money = "Each retry is another charge.",
            .mend = "Store the key with the result of the work, and look for it before any work."},
           &effect},
      Case{{.id = "replay.identical",
            .severity = correctness,
            .title = "A retry gets the first answer, byte for byte",
            .reason = "The client whose answer was lost needs that answer: its status and its ids.",
            .source = draft_replay,
            .money = "A client that reads another answer may take a paid order for unpaid.",
            .mend = "Store status and body as they were sent, and send those bytes."},
           &identical},
      Case{{.id = "replay.headers",
            .severity = correctness,
            .title = "A replay has the fields that describe its body",
            .reason = "Without Content-Type and Location a client cannot use the answer.",
            .source = "RFC 9110, sections 8.3 and 10.2.2",
            .money = "A client that cannot follow the answer sends the order anew.",
            .mend = "Store the fields that describe the answer beside its body."},
           &headers},
      Case{{.id = "replay.length",
            .severity = correctness,
            .title = "A replay's length is its own",
            .reason = "A wrong Content-Length cuts the answer, or mixes it with the next one.",
            .source = "RFC 9112, section 6.3",
            .money = "The next answer on the connection may belong to another payment.",
            .mend = "Compute Content-Length from the bytes that are sent; never store it."},
           &length},
      Case{{.id = "replay.cookie",
            .severity = correctness,
            .title = "A replay sets no stored cookie",
            .reason = "A stored cookie may belong to a session that has ended, or to another one.",
            .source = "RFC 6265, section 4.1",
            .money = "Who repeats a request could get the session of who sent it first.",
            .mend = "Leave Set-Cookie out of what is stored."},
           &cookie},
      Case{
          {.id = "replay.marker",
           .severity = courtesy,
           .title = "A replay says that it is one",
           .reason = "Clients and operators tell a new charge from the report of an old one by it.",
           .source = stripe_replay,
           .money = "None by itself: nobody can see that a retry cost nothing.",
           .mend = "Add the profile's field to replays, and to nothing else."},
          &marker},
      Case{{.id = "key.echo",
            .severity = interoperability,
            .title = "Each answer names its key",
            .reason = "Agents match answers to their orders by it.",
            .source = "Agentic Commerce Protocol, checkout RFC, section 6",
            .money = "None by itself.",
            .mend = "Copy the key into a field of the answer."},
           &echo},
  };
  return cases;
}

}  // namespace idem::check
