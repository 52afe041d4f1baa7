#include "check/cases/cases.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace idem::check {
namespace {

using enum Severity;

constexpr std::string_view draft_syntax =
    "draft-ietf-httpapi-idempotency-key-header-07, section 2.1";

/// A request with this as the value of its key field.
Request with_field(CaseRun& run, const std::string& value) {
  Request request = run.api().build(run.api().order());
  request.set(run.spec().key_header, value);
  return request;
}

/// Sends requests that must not run; fails if one did.
CaseEnd must_not_run(CaseRun& run, const Request& request, const std::string& what,
                     const std::vector<int>& wanted) {
  const auto sent = run.send(request, what);
  if (!sent) return CaseRun::pass("It got " + shown(sent) + ".");
  if (auto often = ran_too_often(run, 0, what)) {
    if (often->outcome == Outcome::fail) often->detail += " It got " + shown(sent) + ".";
    return *often;
  }
  if (sent->is_success()) return CaseRun::fail(what + " was accepted: " + shown(sent) + ".");
  if (sent->status >= 500) return CaseRun::fail(what + " got " + shown(sent) + ".");
  if (!wanted.empty() && !is_one_of(sent->status, wanted)) {
    return CaseRun::fail(what + " got " + shown(sent) + ", and the profile says " +
                         statuses(wanted) + ".");
  }
  return CaseRun::pass();
}

CaseEnd must_run(CaseRun& run, const Request& request, const std::string& what) {
  const auto sent = run.send(request, what);
  if (!sent) return CaseRun::skip(what + " got " + shown(sent) + ".");
  if (sent->is_success()) return CaseRun::pass();
  return CaseRun::fail(what + " was not accepted: " + shown(sent) + ".");
}

/// That the API accepts the usual request at all.
std::optional<CaseEnd> why_not_usable(CaseRun& run) {
  auto first = send_first(run);
  if (!first) return first.error();
  return std::nullopt;
}

CaseEnd missing(CaseRun& run) {
  if (!run.profile().key_required)
    return CaseRun::skip("The profile lets requests without a key run.");
  Request request = run.api().build(run.api().order());
  request.remove(run.spec().key_header);
  return must_not_run(run, request, "A request without a key", run.profile().missing);
}

CaseEnd empty(CaseRun& run) {
  Request request = with_field(run, "");
  const auto end = must_not_run(run, request, "A request with an empty key", {});
  if (end.outcome != Outcome::fail || run.profile().key_required) return end;
  // Where a key may be missing, an empty one may count as none; but not as one that all share.
  const auto other = run.send(with_field(run, ""), "another request with an empty key");
  const auto executed = run.executed();
  if (other && other->is_success() && executed && *executed >= 2) {
    return CaseRun::pass("An empty key counts as none.");
  }
  return end;
}

CaseEnd quoted(CaseRun& run) {
  if (!run.profile().takes_strings) return CaseRun::skip("The profile's keys have no quotes.");
  if (auto why = why_not_usable(run)) return *why;
  return must_run(run, with_field(run, '"' + run.api().new_key() + '"'),
                  "A key as a String (RFC 9651)");
}

CaseEnd list(CaseRun& run) {
  const std::string value = '"' + run.api().new_key() + "\", \"" + run.api().new_key() + '"';
  if (run.profile().refuses_lists) {
    return must_not_run(run, with_field(run, value), "A list of two keys", {});
  }
  return CaseRun::skip("The profile does not say what a list is.");
}

CaseEnd twice(CaseRun& run) {
  Request request = run.api().build(run.api().order());
  request.fields.emplace_back(run.spec().key_header, run.api().written(run.api().new_key()));
  if (run.profile().refuses_lists) {
    return must_not_run(run, request, "A request with two key fields", {});
  }
  // Where it is not said: the second key must not stand for the first.
  const auto sent = run.send(request, "a request with two key fields");
  if (!sent || !sent->is_success()) return CaseRun::pass("It is refused.");
  const auto again = run.send(request, "the same again");
  if (auto often = ran_too_often(run, 1, "A request with two key fields and its retry"))
    return *often;
  return again && is_same_answer(*sent, *again)
             ? CaseRun::pass("It counts as one key.")
             : CaseRun::fail("Its retry got " + shown(again) + ".");
}

CaseEnd not_ascii(CaseRun& run) {
  const Request request = with_field(run, run.api().written("idem-check-\xC3\xA9-\xFF"));
  const auto sent = run.send(request, "a key with bytes beyond ASCII");
  if (!sent) return CaseRun::pass("It got " + shown(sent) + ".");
  if (sent->status >= 500) {
    return CaseRun::fail("A key with bytes beyond ASCII got " + shown(sent) + ".");
  }
  if (run.profile().refuses_lists && sent->is_success()) {
    return CaseRun::fail(
        "A key with bytes beyond ASCII, which is no String of RFC 9651, was "
        "accepted: " +
        shown(sent) + ".");
  }
  return CaseRun::pass();
}

CaseEnd full_length(CaseRun& run) {
  if (run.api().key_form() == KeyForm::uuid) return CaseRun::skip("Its keys are UUIDs.");
  if (auto why = why_not_usable(run)) return *why;
  const std::size_t promised = run.profile().key_length;
  const std::size_t length = promised == 0 ? 255 : promised;
  std::string key = run.api().new_key();
  key.resize(length, 'x');
  const Request request = with_field(run, run.api().written(key));
  const std::string what = "A key of " + std::to_string(length) + " characters";
  if (promised != 0) return must_run(run, request, what);
  // How long a key may be, the profile does not say; a refusal has to be one.
  const auto sent = run.send(request, what);
  if (!sent) return CaseRun::skip(what + " got " + shown(sent) + ".");
  if (sent->is_success()) return CaseRun::pass();
  if (sent->is_refusal()) return CaseRun::pass("It is refused: " + shown(sent) + ".");
  return CaseRun::fail(what + " got " + shown(sent) + ".");
}

/// Two keys that a column of 36, 64 or 255 characters would make one.
CaseEnd truncated(CaseRun& run) {
  if (run.api().key_form() == KeyForm::uuid) return CaseRun::skip("Its keys are UUIDs.");
  for (const std::size_t length : {40UL, 100UL, 250UL, 1000UL}) {
    std::string key = run.api().new_key();
    key.resize(length - 1, 'x');
    Order first = run.api().order();
    Order second = run.api().order();
    first.key = key + 'a';
    second.key = key + 'b';
    const auto one =
        run.send(run.api().build(first), "a key of " + std::to_string(length) + " characters");
    if (!one || !one->is_success()) continue;
    const auto other = run.send(run.api().build(second), "one that differs in its last character");
    if (!other || other->is_success()) {
      if (other && is_same_answer(*one, *other)) {
        return CaseRun::fail("Of two keys of " + std::to_string(length) +
                             " characters that differ in the last one, the second got the first "
                             "one's answer: " +
                             shown(other) + ".");
      }
      continue;
    }
    return CaseRun::fail("Of two keys of " + std::to_string(length) +
                         " characters that differ in the last one, the second got " + shown(other) +
                         ".");
  }
  return CaseRun::pass();
}

CaseEnd letter_case(CaseRun& run) {
  if (run.api().key_form() == KeyForm::uuid) return CaseRun::skip("Its keys are UUIDs.");
  auto first = send_first(run);
  if (!first) return first.error();
  Order other = run.api().order();
  other.key = first->order.key;
  std::ranges::transform(other.key, other.key.begin(),
                         [](unsigned char c) { return std::toupper(c); });
  const auto sent = run.send(run.api().build(other), "another request, the key in capitals");
  if (!sent) return CaseRun::skip("The other request got " + shown(sent) + ".");
  if (sent->is_success() && !is_same_answer(first->answer, *sent)) return CaseRun::pass();
  return CaseRun::fail("Another request, whose key differs from the first one's by capitals, got " +
                       shown(sent) + ".");
}

constexpr std::string_view money_of_one_key =
    "Two payments become one: the second client gets the receipt of the first.";

constexpr std::array cases{
    Case{{.id = "key.missing",
          .severity = money,
          .title = "A request without a key does not run",
          .reason = "The profile promises protection to all who read it.",
          .source = draft_syntax,
          .money = "A client that forgot the key pays at each retry.",
          .mend = "Refuse it with the profile's status, and name the field."},
         &missing},
    Case{{.id = "key.empty",
          .severity = money,
          .title = "An empty key protects nobody, and says so",
          .reason = "A variable that is not set makes an empty key.",
          .source = draft_syntax,
          .money = "All who send it share one key, or none of them is protected.",
          .mend = "Refuse it."},
         &empty},
    Case{{.id = "key.quoted",
          .severity = interoperability,
          .title = "A key in quotes is a key",
          .reason = "The draft writes keys as Strings of RFC 9651.",
          .source = draft_syntax,
          .money = "Clients that follow the draft cannot pay.",
          .mend = "Parse the field as an Item that is a String."},
         &quoted},
    Case{{.id = "key.list",
          .severity = correctness,
          .title = "Two keys in one field are refused",
          .reason = "A request has one key; which of two is meant, nobody knows.",
          .source = draft_syntax,
          .money = "A retry with one of them runs again.",
          .mend = "Parse the field as an Item; a List is none."},
         &list},
    Case{{.id = "key.twice",
          .severity = correctness,
          .title = "Two key fields are refused, or are one key",
          .reason = "A proxy that adds a key beside the client's makes two fields.",
          .source = draft_syntax,
          .money = "A retry by another way has another key, and runs again.",
          .mend = "Refuse a request with two fields."},
         &twice},
    Case{{.id = "key.nonascii",
          .severity = correctness,
          .title = "A key beyond ASCII is refused, and breaks nothing",
          .reason = "Strings of RFC 9651 are ASCII; databases refuse other bytes late.",
          .source = "RFC 9651, section 3.3.3",
          .money = "A failure behind the work makes a client try again.",
          .mend = "Check the key before anything else."},
         &not_ascii},
    Case{{.id = "key.long",
          .severity = interoperability,
          .title = "A long key is accepted, or refused as such",
          .reason = "Clients make keys from order numbers and names.",
          .source = "Stripe API reference, Idempotent requests",
          .money = "Clients with long keys cannot pay.",
          .mend = "Store a digest of the key."},
         &full_length},
    Case{{.id = "key.truncated",
          .severity = money,
          .title = "Long keys stay apart",
          .reason = "A column that cuts keys makes one of two.",
          .source = draft_syntax,
          .money = money_of_one_key,
          .mend = "Store a digest of the whole key, or refuse what does not fit."},
         &truncated},
    Case{{.id = "key.case",
          .severity = money,
          .title = "Capitals are other letters",
          .reason = "Keys in base64 differ by them.",
          .source = "RFC 9651, section 3.3.3",
          .money = money_of_one_key,
          .mend = "Compare keys byte by byte; mind the collation of the column."},
         &letter_case},
};

}  // namespace

std::span<const Case> key_cases() { return cases; }

}  // namespace idem::check
