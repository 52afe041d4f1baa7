#include "cli/commands/keys_command.hpp"

#include "cli/commands/admin_values.hpp"
#include "cli/commands/keys_print.hpp"
#include "cli/commands/keys_table.hpp"
#include "cli/exit_code.hpp"
#include "core/bytes/base64.hpp"
#include "core/bytes/percent.hpp"
#include "json/writer.hpp"
#include "store/file_access.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

namespace idem::cli {

namespace {

constexpr const char* example =
    "\nTo settle an unknown outcome: idem keys list --state unknown; idem keys show REF; look with "
    "the provider; if the charge is there, idem keys resolve REF --fence 7 --as completed --status "
    "201 --body-file answer.json --evidence \"ch_1 in the bank's list\" --reason \"ticket 4711\"; "
    "if it is not, --as failed_retryable without an answer: the next retry runs.";

}  // namespace

KeysCommand::KeysCommand(const Command& program)
    : BulkCommand(program, "keys", "See and settle the records of a running gateway or worker"),
      list_(declare("list",
                    "List the oldest records first; with --limit, --cursor or --json, one page in "
                    "the order of the refs")),
      show_(declare("show", "One record with its evidence log")),
      resolve_(declare(
          "resolve",
          "Settle a record by evidence: unknown, or failed_retryable or pending after an attempt")),
      release_(declare("release", "Drop a stored 5xx answer, so that a retry runs again")) {
  declare_list();
  declare_resolve();
  show_.add_option("ref", ref_, "the record's ref: 32 hexadecimal digits")
      .required()
      .valid(why_no_id);
  for (const auto& one : {resolve_, release_}) {
    one.add_option("ref", ref_, "the record's ref: 32 hexadecimal digits; or else --all")
        .valid(why_no_id);
    one.add_option("--fence", fence_,
                   "with a ref: fence of the attempt that you decide about, from list or show");
    one.add_option("--reason", reason_, "why, for the evidence log").required();
    one.add_flag("--all", all_,
                 "all records that match the filters, as a job: it shows their number and asks");
    declare_filter(one);
    declare_job(one);
  }
  for (const auto& one : {command(), resolve_}) one.set_notes(one.notes() + example);
}

void KeysCommand::declare_list() {
  declare_filter(list_);
  list_.add_option("--key", filter_.key, "only this key; needs --scope and --operation");
  list_.add_option("--find", filter_.find,
                   "records that had this value when search.requests, search.answers indexed it: "
                   "a trace id, the upstream's reference, or what your API calls the work");
  list_.add_option("--limit", filter_.limit, "records in a page").between(1, 1'000);
  list_.add_option("--cursor", filter_.cursor, "continue after an earlier page");
}

void KeysCommand::declare_filter(const Command& verb) {
  verb.add_option("--state", filter_.state,
                  "pending, in_progress, completed, failed_retryable, "
                  "unknown or expired")
      .one_of({"pending", "in_progress", "completed", "failed_retryable", "unknown", "expired"});
  verb.add_option("--scope", filter_.scope, "only this scope");
  verb.add_option("--operation", filter_.operation, "only this operation");
  verb.add_option("--older-than", filter_.older_than,
                  "created before: an age such as 30m or 24h, or an RFC 3339 time")
      .valid(why_no_age);
  verb.add_option("--newer-than", filter_.newer_than,
                  "created since: an age such as 30m or 24h, or an RFC 3339 time")
      .valid(why_no_age);
  verb.add_flag("--contested", filter_.contested,
                "only contested records: evidence disagrees with their outcome");
}

void KeysCommand::declare_resolve() {
  resolve_.add_option("--as", as_, "completed or failed_retryable")
      .one_of({"completed", "failed_retryable"})
      .required();
  resolve_.add_option("--evidence", evidence_, "what you saw, and where").required();
  resolve_
      .add_option("--observed-at", observed_at_,
                  "when you saw it, an RFC 3339 time; now by default")
      .valid(why_no_time);
  resolve_.add_option("--status", answer_.status,
                      "status of the answer that the caller receives; needed with --as completed");
  resolve_.add_option("--header", answer_.headers, "\"Name: value\" of that answer; repeatable")
      .one_value_each();
  resolve_.add_option("--body-file", answer_.body_file, "file with its body").file();
}

int KeysCommand::run() {
  if (list_.parsed()) return list();
  if (show_.parsed()) return show();
  return resolve_.parsed() ? resolve() : release();
}

std::string KeysCommand::list_target() const {
  std::string target = "/v1/keys";
  add_parameter(target, "state", filter_.state);
  add_parameter(target, "scope", filter_.scope);
  add_parameter(target, "operation", filter_.operation);
  add_parameter(target, "key", filter_.key);
  add_parameter(target, "find", filter_.find);
  add_parameter(target, "older_than", filter_.older_than);
  add_parameter(target, "newer_than", filter_.newer_than);
  if (filter_.contested) add_parameter(target, "contested", "true");
  return target;
}

// The store lists records in the order of their refs, so the oldest ones are known only after
// reading all. A requested page is sorted only within itself, and says so.
int KeysCommand::list() {
  const bool is_page = filter_.limit || !filter_.cursor.empty() || !filter_.find.empty();
  if (!is_page && !json()) return list_oldest();
  std::string target = list_target();
  if (filter_.limit) add_parameter(target, "limit", std::to_string(*filter_.limit));
  add_parameter(target, "cursor", filter_.cursor);
  return finish(target, nullptr, filter_.find.empty() ? print_page : print_found);
}

int KeysCommand::list_oldest() {
  KeysTable table;
  std::string cursor;
  // Contested records are few among all, so those pages show little of what they read.
  const std::size_t most = filter_.contested ? limits::export_pages_max * limits::list_page_max
                                             : limits::listed_records_max;
  for (std::size_t read = 0; read < most; read += limits::list_page_max) {
    std::string target = list_target();
    // A key has a few records at most, so there are no pages.
    if (filter_.key.empty()) add_parameter(target, "limit", std::to_string(limits::list_page_max));
    add_parameter(target, "cursor", cursor);
    const auto answer = ask(target, nullptr);
    if (!answer) return answer.error();
    if (answer->status != 200) return complain_about(*answer);
    auto next = table.add(answer->body);
    if (!next) return complain(malformed_answer, failed);
    cursor = std::move(*next);
    if (cursor.empty()) break;
  }
  table.print_oldest(limits::listed_rows_default, !cursor.empty());
  return done;
}

int KeysCommand::show() {
  return finish("/v1/keys/" + percent_encoded(ref_), nullptr, print_record);
}

std::optional<int> KeysCommand::why_not_one_or_all() const {
  if (all_) {
    if (ref_.empty() && fence_ == 0 && observed_at_.empty()) return std::nullopt;
    return complain("--all is about all records that match; leave out ref, --fence, --observed-at",
                    usage);
  }
  const Match filters = match();
  const bool has_filter =
      std::ranges::any_of(filters, [](const auto& one) { return !one.second.empty(); });
  if (has_filter || has_job_options())
    return complain("the filters and --rate, --expect, --detach need --all", usage);
  if (!ref_.empty() && fence_ != 0) return std::nullopt;
  return complain("give the record's ref and its --fence, or --all and filters", usage);
}

BulkCommand::Match KeysCommand::match() const {
  return {{"state", filter_.state},           {"scope", filter_.scope},
          {"operation", filter_.operation},   {"older_than", filter_.older_than},
          {"newer_than", filter_.newer_than}, {"contested", filter_.contested ? "true" : ""}};
}

std::expected<std::string, int> KeysCommand::resolve_order(bool names_fence) const {
  const auto fails = [&](const std::string& sentence) {
    return std::unexpected(complain(sentence, usage));
  };
  json::Writer order;
  order.begin_object();
  order.member("as", as_);
  if (names_fence) order.member("fence", fence_);
  order.member("evidence", evidence_);
  order.member("reason", reason_);
  if (!observed_at_.empty()) order.member("observed_at", observed_at_);
  if (answer_.status != 0) {
    order.name("response");
    order.begin_object();
    order.member("status", answer_.status);
    order.name("headers");
    order.begin_array();
    for (const auto& line : answer_.headers) {
      if (!line.contains(':')) return fails("--header must be \"Name: value\"");
      write_header(order, line);
    }
    order.end_array();
    if (!answer_.body_file.empty()) {
      errno = 0;
      std::ifstream file(answer_.body_file, std::ios::binary);
      if (!file) return fails("--body-file: " + why_no_line(answer_.body_file, errno));
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      order.member("body_b64", to_base64(bytes));
    }
    order.end_object();
  } else if (!answer_.headers.empty() || !answer_.body_file.empty()) {
    return fails("--header and --body-file belong to an answer: give its --status too");
  }
  order.end_object();
  return order.take();
}

int KeysCommand::resolve() {
  if (const auto why_not = why_not_one_or_all()) return *why_not;
  // The API would refuse it too, but would count it as evidence that the operation ran.
  if (as_ == "completed" && answer_.status == 0) {
    return complain("--as completed needs the answer that the caller receives: give its --status",
                    usage);
  }
  const auto body = resolve_order(!all_);
  if (!body) return body.error();
  if (all_) return run_job("keys.resolve", match(), *body);
  return finish("/v1/keys/" + percent_encoded(ref_) + "/resolve", &*body, print_record);
}

int KeysCommand::release() {
  if (const auto why_not = why_not_one_or_all()) return *why_not;
  json::Writer order;
  order.begin_object();
  if (!all_) order.member("fence", fence_);
  order.member("reason", reason_);
  order.end_object();
  const std::string body = order.take();
  if (all_) return run_job("keys.release", match(), body);
  return finish("/v1/keys/" + percent_encoded(ref_) + "/release", &body, print_record);
}

}  // namespace idem::cli
