#include "cli/keys_command.hpp"

#include "cli/commands.hpp"
#include "cli/keys_print.hpp"
#include "core/base64.hpp"
#include "json/value.hpp"
#include "json/writer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace idem::cli {
namespace {

/// The name under which a decision is kept when nobody gives one: who is logged in.
std::string login_name() {
  const char* name = std::getenv("USER");
  const std::string text = name != nullptr ? name : "";
  const bool plain = text.size() <= limits::operator_name_bytes_max &&
                     text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789._-@") == std::string::npos;
  return plain ? text : "";
}

int complain(const std::string& sentence, int code) {
  std::fprintf(stderr, "idem keys: %s\n", sentence.c_str());
  return code;
}

int exit_code_of(int status) {
  if (status == 200) return done;
  if (status == 404) return not_found;
  if (status == 409) return refused;
  return status >= 400 && status < 500 ? usage : failed;
}

/// A problem's sentence, or its body where it is none.
std::string sentence_of(const AdminAnswer& answer) {
  if (const auto value = json::parse(answer.body)) {
    for (const auto* name : {"detail", "title"}) {
      const auto* member = value->find(name);
      const auto* text = member != nullptr ? std::get_if<std::string>(&member->is) : nullptr;
      if (text != nullptr) return printable(*text);
    }
  }
  return "the admin API answered " + std::to_string(answer.status);
}

}  // namespace

KeysCommand::KeysCommand(CLI::App& app)
    : command_(app.add_subcommand("keys", "See and settle the records of a running gateway")) {
  access_.operator_name = login_name();
  command_->require_subcommand(1);
  // Once, and not of each subcommand: CLI11 reads the variables of those that were not asked for,
  // too, and the last one would beat the flag.
  command_->add_option("--admin-url", access_.url, "where the gateway's admin listener is")
      ->envname("IDEM_ADMIN_URL")
      ->capture_default_str();
  command_->add_flag("--json", json_, "what the admin API answers, as it is");
  command_->add_option("--operator", access_.operator_name, "who decides; kept for good")
      ->envname("IDEM_OPERATOR")
      ->capture_default_str();
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

CLI::App* KeysCommand::declare(const char* name, const char* text) {
  auto* one = command_->add_subcommand(name, text);
  one->fallthrough();  // So that the options of all may stand behind the verb.
  return one;
}

void KeysCommand::declare_list() {
  list_ = declare("list", "A page of records");
  list_->add_option("--state", filter_.state,
                    "pending, in_progress, completed, failed_retryable, "
                    "unknown or expired");
  list_->add_option("--scope", filter_.scope, "of this scope");
  list_->add_option("--operation", filter_.operation, "of this operation");
  list_->add_option("--key", filter_.key, "the one of this key; needs --scope and --operation");
  list_->add_option("--older-than", filter_.older_than, "created before: 30m, 24h or a time");
  list_->add_option("--limit", filter_.limit, "records in a page, 1000 at most");
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

int KeysCommand::list() {
  std::string target = "/v1/keys";
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    target += target.find('?') == std::string::npos ? '?' : '&';
    target += std::string(name) + '=' + percent_encoded(value);
  };
  add("state", filter_.state);
  add("scope", filter_.scope);
  add("operation", filter_.operation);
  add("key", filter_.key);
  add("older_than", filter_.older_than);
  add("limit", filter_.limit > 0 ? std::to_string(filter_.limit) : "");
  add("cursor", filter_.cursor);
  return finish(target, nullptr, print_page);
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

int KeysCommand::finish(const std::string& target, const std::string* body,
                        void (*print)(const std::string& json)) {
  // It becomes a field of the request, which a line break would end.
  const bool is_name =
      std::ranges::all_of(access_.operator_name, [](char c) { return c > ' ' && c < 0x7F; });
  if (!is_name) return complain("--operator is one name without blanks, in ASCII", usage);
  const auto answer = ask_admin(access_, target, body);
  if (!answer) {
    const auto& failure = answer.error();
    if (failure.wrong_url) return complain("--admin-url: " + failure.why, usage);
    return complain(access_.url + " cannot be reached: " + failure.why +
                        "; is the gateway running with --admin?",
                    not_reachable);
  }
  if (answer->status != 200) return complain(sentence_of(*answer), exit_code_of(answer->status));
  if (json_) {
    std::fwrite(answer->body.data(), 1, answer->body.size(), stdout);
  } else {
    print(answer->body);
  }
  return done;
}

}  // namespace idem::cli
