#include "cli/commands/keys_command.hpp"

#include "cli/commands.hpp"
#include "cli/commands/keys_print.hpp"
#include "cli/commands/keys_table.hpp"
#include "core/bytes/base64.hpp"
#include "json/writer.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <fstream>
#include <iterator>

namespace idem::cli {

KeysCommand::KeysCommand(CLI::App& app)
    : OperatorCommand(app, "keys", "See and settle the records of a running gateway") {
  declare_list();
  show_ = declare("show", "Everything about one record, with the decisions about it");
  declare_resolve();
  release_ = declare("release", "Let a retry run again although a 5xx answer is stored");
  for (auto* one : {show_, resolve_, release_}) {
    one->add_option("ref", ref_, "the record's ref: 32 hexadecimal digits")->required();
  }
  for (auto* one : {resolve_, release_}) {
    one->add_option("--fence", fence_, "the attempt that this is about, as list and show tell it")
        ->required();
    one->add_option("--reason", reason_, "why; kept for good")->required();
  }
}

void KeysCommand::declare_list() {
  list_ = declare("list",
                  "The oldest records first; with --limit, --cursor or --json a page in the order "
                  "of their refs");
  list_->add_option("--state", filter_.state,
                    "pending, in_progress, completed, failed_retryable, "
                    "unknown or expired");
  list_->add_option("--scope", filter_.scope, "of this scope");
  list_->add_option("--operation", filter_.operation, "of this operation");
  list_->add_option("--key", filter_.key, "the one of this key; needs --scope and --operation");
  list_->add_option("--older-than", filter_.older_than, "created before: 30m, 24h or a time");
  list_->add_option("--newer-than", filter_.newer_than, "created since: 30m, 24h or a time");
  list_->add_option("--limit", filter_.limit, "records in a page, 1 to 1000");
  list_->add_option("--cursor", filter_.cursor, "go on behind an earlier page");
}

void KeysCommand::declare_resolve() {
  resolve_ = declare("resolve", "Settle an unknown record by evidence");
  resolve_->add_option("--as", as_, "completed or failed_retryable")->required();
  resolve_->add_option("--evidence", evidence_, "what was seen, and where")->required();
  resolve_->add_option("--observed-at", observed_at_, "when it was seen; now by default");
  resolve_->add_option("--status", answer_.status, "of the answer that its caller shall have");
  resolve_->add_option("--header", answer_.headers, "\"Name: value\" of that answer; repeatable")
      ->allow_extra_args(false);
  resolve_->add_option("--body-file", answer_.body_file, "its body");
}

int KeysCommand::run() {
  if (list_->parsed()) return list();
  if (show_->parsed()) return show();
  return resolve_->parsed() ? resolve() : release();
}

std::string KeysCommand::list_target() const {
  std::string target = "/v1/keys";
  add_parameter(target, "state", filter_.state);
  add_parameter(target, "scope", filter_.scope);
  add_parameter(target, "operation", filter_.operation);
  add_parameter(target, "key", filter_.key);
  add_parameter(target, "older_than", filter_.older_than);
  add_parameter(target, "newer_than", filter_.newer_than);
  return target;
}

// The store lists records in the order of their refs, so the oldest of all are known only when all
// were read. A page that was asked for is sorted in itself, and says so.
int KeysCommand::list() {
  const bool is_page = filter_.limit || !filter_.cursor.empty();
  if (!is_page && !json()) return list_oldest();
  std::string target = list_target();
  if (filter_.limit) add_parameter(target, "limit", std::to_string(*filter_.limit));
  add_parameter(target, "cursor", filter_.cursor);
  return finish(target, nullptr, print_page);
}

int KeysCommand::list_oldest() {
  KeysTable table;
  std::string cursor;
  for (std::size_t read = 0; read < limits::listed_records_max; read += limits::list_page_max) {
    std::string target = list_target();
    // A key has a record or a few, and no pages.
    if (filter_.key.empty()) add_parameter(target, "limit", std::to_string(limits::list_page_max));
    add_parameter(target, "cursor", cursor);
    const auto answer = ask(target, nullptr);
    if (!answer) return answer.error();
    if (answer->status != 200) return complain_about(*answer);
    auto next = table.add(answer->body);
    if (!next) return complain("what the admin API answers is not understood", failed);
    cursor = std::move(*next);
    if (cursor.empty()) break;
  }
  table.print_oldest(limits::listed_rows_default, !cursor.empty());
  return done;
}

int KeysCommand::show() {
  return finish("/v1/keys/" + percent_encoded(ref_), nullptr, print_record);
}

int KeysCommand::resolve() {
  json::Writer order;
  order.begin_object();
  order.member("as", as_);
  order.member("fence", fence_);
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
      const auto colon = line.find(':');
      if (colon == std::string::npos) return complain("--header is \"Name: value\"", usage);
      const auto value = line.find_first_not_of(' ', colon + 1);
      order.begin_array();
      order.text(line.substr(0, colon));
      order.text(value == std::string::npos ? "" : line.substr(value));
      order.end_array();
    }
    order.end_array();
    if (!answer_.body_file.empty()) {
      std::ifstream file(answer_.body_file, std::ios::binary);
      if (!file) return complain("--body-file " + answer_.body_file + " cannot be read", usage);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      order.member("body_b64", to_base64(bytes));
    }
    order.end_object();
  } else if (!answer_.headers.empty() || !answer_.body_file.empty()) {
    return complain("--header and --body-file belong to an answer: give its --status", usage);
  }
  order.end_object();
  const std::string body = order.take();
  return finish("/v1/keys/" + percent_encoded(ref_) + "/resolve", &body, print_record);
}

int KeysCommand::release() {
  json::Writer order;
  order.begin_object();
  order.member("fence", fence_);
  order.member("reason", reason_);
  order.end_object();
  const std::string body = order.take();
  return finish("/v1/keys/" + percent_encoded(ref_) + "/release", &body, print_record);
}

}  // namespace idem::cli
