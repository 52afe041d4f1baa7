#include "check/cases/cases.hpp"

#include <array>

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

/// Sends a request that the API must not execute.
CaseEnd must_not_run(CaseRun& run, const Request& request, const std::string& what,
                     const std::vector<int>& wanted) {
  const auto sent = run.send(request, label_of(what));
  // Without an answer only `effects` know; with one it is judged below, too.
  if (auto often = ran_too_often(run, 0, what); often && run.has_effects()) {
    if (often->outcome == Outcome::fail) often->detail += " It received " + shown(sent) + ".";
    return *often;
  }
  if (!sent) return CaseRun::skip(what + " received " + shown(sent) + ".");
  if (sent->is_success())
    return CaseRun::fail("The API accepted " + label_of(what) + ": " + shown(sent) + ".");
  if (sent->status >= 500) return CaseRun::fail(what + " received " + shown(sent) + ".");
  if (!wanted.empty() && !is_one_of(sent->status, wanted)) {
    return CaseRun::fail(what + " received " + shown(sent) + "; the profile requires " +
                         statuses(wanted) + ".");
  }
  return CaseRun::pass();
}

CaseEnd must_run(CaseRun& run, const Request& request, const std::string& what) {
  const auto sent = run.send(request, label_of(what));
  if (!sent) return CaseRun::skip(what + " received " + shown(sent) + ".");
  if (sent->is_success()) return CaseRun::pass();
  return CaseRun::fail("The API did not accept " + label_of(what) + ": " + shown(sent) + ".");
}

/// That the API accepts the usual request at all.
std::optional<CaseEnd> why_not_usable(CaseRun& run) {
  auto first = send_first(run);
  if (!first) return first.error();
  return std::nullopt;
}

CaseEnd missing(CaseRun& run) {
  if (!run.profile().key_required)
    return CaseRun::skip("The profile allows requests without a key.");
  Request request = run.api().build(run.api().order());
  request.remove(run.spec().key_header);
  return must_not_run(run, request, "A request without a key", run.profile().missing);
}

CaseEnd empty(CaseRun& run) {
  Request request = with_field(run, "");
  const auto end = must_not_run(run, request, "A request with an empty key", {});
  if (end.outcome != Outcome::fail || run.profile().key_required) return end;
  // Where the key is optional, an empty key may count as none, but not as a key that all share.
  const auto other = run.send(with_field(run, ""), "another request with an empty key");
  const auto executed = run.executed();
  if (other && other->is_success() && executed && *executed >= 2) {
    return CaseRun::pass("The API treats an empty key as no key.");
  }
  return end;
}

CaseEnd quoted(CaseRun& run) {
  if (!run.profile().accepts_strings)
    return CaseRun::skip("The keys of the profile are not quoted.");
  if (auto why = why_not_usable(run)) return *why;
  return must_run(run, with_field(run, '"' + run.api().new_key() + '"'),
                  "A key as a String (RFC 9651)");
}

CaseEnd list(CaseRun& run) {
  const std::string value = '"' + run.api().new_key() + "\", \"" + run.api().new_key() + '"';
  if (run.profile().refuses_lists) {
    return must_not_run(run, with_field(run, value), "A list of two keys", {});
  }
  return CaseRun::skip("The profile does not define a list of keys.");
}

CaseEnd twice(CaseRun& run) {
  Request request = run.api().build(run.api().order());
  request.fields.emplace_back(run.spec().key_header, run.api().written(run.api().new_key()));
  if (run.profile().refuses_lists) {
    return must_not_run(run, request, "A request with two key fields", {});
  }
  // Not defined: the API must still execute the operation once.
  const auto sent = run.send(request, "a request with two key fields");
  if (!sent) {
    const auto often = ran_too_often(run, 1, "A request with two key fields");
    return often.value_or(
        CaseRun::skip("A request with two key fields received " + shown(sent) + "."));
  }
  if (!sent->is_success()) return CaseRun::pass("The API refuses it.");
  const auto again = run.send(request, "its retry");
  if (auto often = ran_too_often(run, 1, "A request with two key fields and its retry"))
    return *often;
  return again && is_same_result(run, *sent, *again)
             ? CaseRun::pass("The API treats them as one key.")
             : CaseRun::fail("The retry of a request with two key fields received " + shown(again) +
                             ".");
}

CaseEnd not_ascii(CaseRun& run) {
  const std::string key = run.api().new_key() + "-\xC3\xA9-\xFF";
  const auto sent = run.send(with_field(run, run.api().written(key)), "a key with non-ASCII bytes");
  // Whatever it received: the API executed what it did not accept, and the client retries.
  if (run.has_effects() && (!sent || !sent->is_success())) {
    if (auto often = ran_too_often(run, 0, "A key with non-ASCII bytes")) {
      if (often->outcome == Outcome::fail) often->detail += " It received " + shown(sent) + ".";
      return *often;
    }
  }
  if (!sent) return CaseRun::skip("A key with non-ASCII bytes received " + shown(sent) + ".");
  if (sent->status >= 500) {
    return CaseRun::fail("A key with non-ASCII bytes received " + shown(sent) + ".");
  }
  if (run.profile().refuses_lists && sent->is_success()) {
    return CaseRun::fail(
        "The API accepted a key with non-ASCII bytes, which is not a String of RFC 9651: " +
        shown(sent) + ".");
  }
  return CaseRun::pass();
}

CaseEnd full_length(CaseRun& run) {
  if (run.api().key_form() == KeyForm::uuid) return CaseRun::skip(uuid_keys);
  if (auto why = why_not_usable(run)) return *why;
  const std::size_t promised = run.profile().key_length;
  const std::size_t length = promised == 0 ? 255 : promised;
  std::string key = run.api().new_key();
  key.resize(length, 'x');
  const Request request = with_field(run, run.api().written(key));
  const std::string what = "A key of " + std::to_string(length) + " characters";
  if (promised != 0) return must_run(run, request, what);
  // The profile defines no length; a long key must be accepted, or refused by a 4xx.
  const auto sent = run.send(request, label_of(what));
  if (!sent) return CaseRun::skip(what + " received " + shown(sent) + ".");
  if (sent->is_success()) return CaseRun::pass();
  if (sent->is_refusal()) return CaseRun::pass("The API refuses it: " + shown(sent) + ".");
  return CaseRun::fail(what + " received " + shown(sent) + ".");
}

/// Of one operation, all of whose executions `effects` count.
std::optional<bool> is_first_result(CaseRun& run, const Answer& first, const Answer& other) {
  const auto known = run.is_result_of_first(first, other);
  return !known && run.has_effects() && !run.api().is_dry() ? true : known;
}

/// Two keys that a column of 36, 64 or 255 characters would cut to one.
CaseEnd truncated(CaseRun& run) {
  if (run.api().key_form() == KeyForm::uuid) return CaseRun::skip(uuid_keys);
  bool is_judged = false;
  for (const std::size_t length : {40UL, 100UL, 250UL, 1000UL}) {
    std::string key = run.api().new_key();
    key.resize(length - 1, 'x');
    Order first = run.api().order();
    Order second = run.api().order();
    first.key = key + 'a';
    second.key = key + 'b';
    const std::string characters = std::to_string(length) + " characters";
    const auto one = run.send(run.api().build(first), "a key of " + characters);
    if (!one || !one->is_success()) continue;
    const auto other =
        run.send(run.api().build(second), "a key that differs in its last character");
    if (!other) continue;
    const auto is_first = is_first_result(run, *one, *other);
    if (other->is_success() && !is_first) return CaseRun::skip(no_difference);
    is_judged = true;
    if (other->is_success() && !*is_first) continue;
    return CaseRun::fail(
        "Two keys of " + characters + " differ in the last one; the second key received " +
        (other->is_success() ? "the answer to the first: " : "") + shown(other) + ".");
  }
  return is_judged ? CaseRun::pass()
                   : CaseRun::skip("The API accepted no key of 40 characters or more.");
}

CaseEnd letter_case(CaseRun& run) {
  if (run.api().key_form() == KeyForm::uuid) return CaseRun::skip(uuid_keys);
  Order lower = run.api().order();
  Order upper = run.api().order();
  upper.key = lower.key + "-ABC";
  lower.key += "-abc";
  auto first = send_first(run, lower);
  if (!first) return first.error();
  const auto sent = run.send(run.api().build(upper), "another request, its key in other case");
  if (!sent) return CaseRun::skip("The other request received " + shown(sent) + ".");
  const auto is_first = is_first_result(run, first->answer, *sent);
  if (sent->is_success() && !is_first) return CaseRun::skip(no_difference);
  if (sent->is_success() && !*is_first) return CaseRun::pass();
  return CaseRun::fail("Another request, whose key differs only in case, received " + shown(sent) +
                       ".");
}

constexpr std::string_view money_of_one_key =
    "Two payments become one: the second client receives the receipt of the first.";

constexpr std::array cases_of_keys{
    Case{{.id = "key.missing",
          .severity = money,
          .title = "The API does not execute a request without a key",
          .reason = "Clients rely on the protection that the profile promises.",
          .source = draft_syntax,
          .money = "A client that forgets the key pays at each retry.",
          .mend = "Refuse the request with the profile's status, and name the header field."},
         &missing},
    Case{{.id = "key.empty",
          .severity = money,
          .title = "The API does not accept an empty key as a key",
          .reason = "A client whose variable is not set sends an empty key.",
          .source = draft_syntax,
          .money = "All clients that send an empty key share it, or none of them is protected.",
          .mend = "Refuse the request."},
         &empty},
    Case{{.id = "key.quoted",
          .severity = interoperability,
          .title = "The API accepts a quoted key",
          .reason = "The draft defines keys as Strings of RFC 9651.",
          .source = draft_syntax,
          .money = "Clients that follow the draft cannot pay.",
          .mend = "Parse the header field as an Item that is a String."},
         &quoted},
    Case{{.id = "key.list",
          .severity = correctness,
          .title = "The API refuses two keys in one header field",
          .reason = "A request has one key; it is unknown which of the two is meant.",
          .source = draft_syntax,
          .money = "A retry with one of the keys executes again.",
          .mend = "Parse the header field as an Item, and refuse a List."},
         &list},
    Case{{.id = "key.twice",
          .severity = correctness,
          .title = "The API refuses two key header fields, or treats them as one key",
          .reason = "A proxy that adds a key of its own makes two header fields.",
          .source = draft_syntax,
          .money = "A retry without that proxy has another key, and executes again.",
          .mend = "Refuse a request with two key header fields."},
         &twice},
    Case{{.id = "key.nonascii",
          .severity = correctness,
          .title = "The API refuses a key with non-ASCII bytes without a failure",
          .reason = "Strings of RFC 9651 are ASCII; a database may refuse other bytes late.",
          .source = "RFC 9651, section 3.3.3",
          .money = "A client retries after a failure that came after the operation.",
          .mend = "Validate the key before anything else."},
         &not_ascii},
    Case{{.id = "key.long",
          .severity = interoperability,
          .title = "The API accepts a long key, or refuses it by a 4xx",
          .reason = "Clients build keys from order numbers and names.",
          .source = "Stripe API reference, Idempotent requests",
          .money = "Clients with long keys cannot pay.",
          .mend = "Store a digest of the key."},
         &full_length},
    Case{{.id = "key.truncated",
          .severity = money,
          .title = "Long keys are distinguished",
          .reason = "A column that truncates keys makes two keys equal.",
          .source = draft_syntax,
          .money = money_of_one_key,
          .mend = "Store a digest of the whole key, or refuse a key that is too long."},
         &truncated},
    Case{{.id = "key.case",
          .severity = money,
          .title = "Keys are case-sensitive",
          .reason = "Keys in base64 may differ only in case.",
          .source = "RFC 9651, section 3.3.3",
          .money = money_of_one_key,
          .mend = "Compare keys byte by byte; check the collation of the column."},
         &letter_case},
};

}  // namespace

std::span<const Case> key_cases() { return cases_of_keys; }

}  // namespace idem::check
