#include "cli/commands/explain_command.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "core/bytes/base64.hpp"
#include "json/writer.hpp"
#include "store/file_access.hpp"

#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>

namespace idem::cli {
namespace {

using json::Value;

std::string joined_texts(const Value* list) {
  std::string all;
  for (const auto& one : items_of(list)) all += (all.empty() ? "" : ", ") + text_of(&one);
  return all.empty() ? "-" : all;
}

bool is_object(const Value* value) {
  return value != nullptr && std::holds_alternative<json::Object>(value->is);
}

std::string answer_text(const Value* answer) {
  if (!is_object(answer)) return "-";
  const std::string status = text_of(answer->find("status"));
  if (status == "-") return "the upstream's";
  std::string text = status;
  if (const auto code = text_of(answer->find("code")); code != "-") text += " " + code;
  if (const auto retry = text_of(answer->find("retry")); retry != "-") text += ", retry " + retry;
  return text;
}

void add_key(Rows& rows, const Value* key) {
  if (!is_object(key)) return rows.push_back({"key", "-"});
  rows.push_back({"key", text_of(key->find("field")) + ", " + text_of(key->find("syntax")) + ", " +
                             text_of(key->find("bytes")) + " bytes"});
}

void add_fingerprint(Rows& rows, const Value* facts) {
  if (!is_object(facts)) return;
  const std::string matches = text_of(facts->find("matches"));
  const char* const verdict = matches == "yes"  ? "as in the record"
                              : matches == "no" ? "another than in the record"
                                                : "not compared";
  rows.push_back({"fingerprint", verdict});
  rows.push_back({"  body counts as", text_of(facts->find("form"))});
  rows.push_back({"  counted", joined_texts(facts->find("counted"))});
  rows.push_back({"  left out", joined_texts(facts->find("left_out"))});
}

void add_record(Rows& rows, const Value& explanation) {
  const auto* const record = explanation.find("record");
  if (!is_object(record)) {
    const std::string ref = text_of(explanation.find("operation_ref"));
    rows.push_back({"record", ref == "-" ? "-" : "none; its ref would be " + ref});
    return;
  }
  rows.push_back({"record", text_of(record->find("ref"))});
  for (const auto* name : {"state", "fence", "created_at", "changed_at", "locked_until",
                           "expires_at", "last_error_code", "response_status"}) {
    if (const auto text = text_of(record->find(name)); text != "-") {
      rows.push_back({"  " + std::string(name), text});
    }
  }
}

/// False: another server's answer, which has not all of these members.
bool print_explanation(const std::string& json) {
  const auto explanation = json::parse(json);
  if (!explanation || text_of(explanation->find("outcome")) == "-") return false;
  Rows rows;
  rows.push_back({"outcome", text_of(explanation->find("outcome"))});
  rows.push_back({"answer", answer_text(explanation->find("answer"))});
  for (const auto* name : {"route", "scope", "operation"}) {
    rows.push_back({name, text_of(explanation->find(name))});
  }
  add_key(rows, explanation->find("key"));
  add_record(rows, *explanation);
  add_fingerprint(rows, explanation->find("fingerprint"));
  for (const auto& one : items_of(explanation->find("differences"))) {
    rows.push_back({"differs", text_of(one.find("part")) + ": stored " +
                                   text_of(one.find("stored")) + ", sent " +
                                   text_of(one.find("sent"))});
  }
  print_rows(rows);
  std::printf("\n%s\n", text_of(explanation->find("why")).c_str());
  return true;
}

}  // namespace

ExplainCommand::ExplainCommand(const Command& program)
    : OperatorCommand(program, "explain",
                      "Say what a running gateway would do with a request, and why; nothing runs",
                      {.has_verbs = false, .decides = false}) {
  auto& self = command();
  self.add_option("-X,--request", method_, "the method; by default GET, or POST with -d");
  self.add_option("target", target_, "path and query, as a client sends them").required();
  self.add_option("-H,--header", headers_, "a field, \"Name: value\"; may be given again")
      .one_value_each();
  self.add_option("-d,--data", data_, "the body; @FILE: the bytes of a file; @-: of stdin");
  self.add_option("--scope", scope_, "whose request it is, where the fields do not say so");
}

std::expected<std::string, std::string> ExplainCommand::body() const {
  if (!data_ || !data_->starts_with('@')) return data_.value_or("");
  const std::string name = data_->substr(1);
  if (name == "-") return std::string{std::istreambuf_iterator<char>(std::cin), {}};
  errno = 0;
  std::ifstream file(name, std::ios::binary);
  if (!file) return std::unexpected("-d @: " + why_no_line(name, errno));
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) return std::unexpected("-d @" + name + " cannot be read to its end");
  return bytes;
}

int ExplainCommand::run() {
  const auto bytes = body();
  if (!bytes) return complain(bytes.error(), usage);
  json::Writer question;
  question.begin_object();
  question.member("method", !method_.empty() ? method_ : data_ ? "POST" : "GET");
  question.member("target", target_);
  question.name("headers");
  question.begin_array();
  for (const auto& line : headers_) {
    if (!line.contains(':')) return complain("--header must be \"Name: value\"", usage);
    write_header(question, line);
  }
  question.end_array();
  question.member("body_b64", to_base64(*bytes));
  if (!scope_.empty()) question.member("scope", scope_);
  question.end_object();
  const std::string order = question.take();
  return finish("/v1/explain", &order, print_explanation);
}

}  // namespace idem::cli
