#include "cli/commands/audit_command.hpp"

#include "admin/audit_json.hpp"
#include "cli/commands/audit_export.hpp"
#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/settings/secret_file.hpp"
#include "cli/terminal/progress.hpp"
#include "core/bytes/utf8.hpp"
#include "json/value.hpp"
#include "store/file_access.hpp"

#include <idem/limits.hpp>

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

namespace idem::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

bool is_null(const json::Value* value) {
  return value == nullptr || std::holds_alternative<std::nullptr_t>(value->is);
}

/// For this user alone: reasons may name customers. Null: there is such a file, or it can not be.
std::FILE* new_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return descriptor < 0 ? nullptr : ::fdopen(descriptor, "w");
}

/// Changed settings are lines of their own; a column has room for the first of them.
std::string as_cell(const json::Value* value) {
  constexpr std::size_t column = 100;
  const auto* const raw = value != nullptr ? std::get_if<std::string>(&value->is) : nullptr;
  std::string text = raw != nullptr ? *raw : std::string();
  while (text.ends_with('\n')) text.pop_back();
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos;) text.replace(at, 1, "; ");
  if (text.empty()) return "-";
  return printable(text.size() <= column ? text : utf8_of(text, column) + "...");
}

/// What became of an intent, or which intent an outcome is of.
std::string result_of(const json::Value& line) {
  const std::string after = as_cell(line.find("after"));
  const auto* const of = line.find("of");
  return is_null(of) ? after : "of " + text_of(of) + ": " + after;
}

bool print_audit_page(const std::string& body) {
  const auto page = json::parse(body);
  if (!page || page->find("audit") == nullptr) return false;
  std::vector<std::vector<std::string>> rows{
      {"SEQ", "AT", "WHO", "WHAT", "REF", "BEFORE", "RESULT", "REASON"}};
  for (const auto& one : items_of(page->find("audit"))) {
    rows.push_back({text_of(one.find("seq")), text_of(one.find("at")), text_of(one.find("who")),
                    text_of(one.find("what")), text_of(one.find("ref")),
                    as_cell(one.find("before")), result_of(one), text_of(one.find("reason"))});
  }
  print_table(rows, {"BEFORE", "RESULT", "REASON", "WHO"});
  if (const auto* const next = page->find("next"); !is_null(next)) {
    std::printf("more: --after %s\n", text_of(next).c_str());
  }
  return true;
}

bool print_verdict(const std::string& body) {
  const auto verdict = json::parse(body);
  if (!verdict || verdict->find("lines") == nullptr) return false;
  const auto* const bad = verdict->find("first_bad");
  if (!is_null(bad)) {
    std::printf("the first bad line is %s: %s\n", text_of(bad).c_str(),
                text_of(verdict->find("why")).c_str());
    return true;
  }
  const auto* const last = verdict->find("last");
  if (is_null(last)) {
    std::printf("whole: no line yet\n");
    return true;
  }
  if (is_null(verdict->find("proven_from"))) {
    std::printf("not proved: no line has a hash by a secret that is here\n");
    return true;
  }
  std::printf("whole: %s lines; the last is %s:%s\n", text_of(verdict->find("lines")).c_str(),
              text_of(last->find("seq")).c_str(), text_of(last->find("hash")).c_str());
  const auto proven_from = text_of(verdict->find("proven_from"));
  if (proven_from != "1") {
    std::printf(
        "proven from line %s on: those before it are of a secret that is not here; to "
        "prove them, export the audit and verify it with --secret-file for each secret\n",
        proven_from.c_str());
  }
  return true;
}

/// Of an answer that has the form of a verdict.
int exit_code_of_verdict(const std::string& body) {
  const auto verdict = json::parse(body);
  // Lines of which none is proved are no verdict of a gateway.
  const bool is_proved =
      verdict && (is_null(verdict->find("last")) || !is_null(verdict->find("proven_from")));
  return is_proved && is_null(verdict->find("first_bad")) ? done : refused;
}

}  // namespace

AuditCommand::AuditCommand(const Command& program)
    : OperatorCommand(program, "audit", "Decisions of operators and changes of settings",
                      {.decides = false}),
      list_(declare("list", "List a page of the audit, oldest first")),
      export_(declare("export", "Write all lines to a file, for a verification elsewhere")),
      verify_(declare("verify", "Find a changed, removed, inserted or moved line")) {
  list_.add_option("--after", after_, "only lines behind this number");
  list_.add_option("--limit", limit_, "lines in a page").between(1, 1'000);
  list_.add_option("--who", who_, "only decisions of this operator");
  list_.add_option("--what", what_, "only such decisions: keys.resolve, dlq.redrive, ...");
  list_.add_option("--ref", ref_, "only about this record, message or token");
  export_.add_option("FILE", to_, "where to; - is standard output").file().required();
  verify_.add_option("--expect", expected_,
                     "SEQ:HASH of a line that there was, from a log or an earlier verification");
  verify_.add_option("--file", from_, "verify this exported file, without a gateway").file();
  verify_
      .add_option("--secret-file", secret_files_,
                  "with --file: the gateways' key.secret_files, as many as there were")
      .file()
      .one_value_each();
}

int AuditCommand::run() {
  if (list_.parsed()) return list();
  if (export_.parsed()) return save();
  return from_.empty() ? verify() : verify_file();
}

int AuditCommand::list() {
  std::string target = "/v1/audit";
  add_parameter(target, "after", after_ ? std::to_string(*after_) : "");
  add_parameter(target, "limit", limit_ ? std::to_string(*limit_) : "");
  add_parameter(target, "who", who_);
  add_parameter(target, "what", what_);
  add_parameter(target, "ref", ref_);
  return finish(target, nullptr, print_audit_page);
}

int AuditCommand::save() {
  const bool is_stdout = to_ == "-";
  std::unique_ptr<std::FILE, CloseFile> file;
  std::FILE* out = stdout;
  std::uint64_t lines = 0;
  std::optional<Progress> progress(std::in_place, "idem audit: ", "export begins");
  for (std::string after = "0"; !after.empty();) {
    const auto answer =
        ask("/v1/audit/lines?limit=" + std::to_string(limits::list_page_max) + "&after=" + after,
            nullptr);
    if (!answer) return answer.error();
    if (answer->status != 200) return complain_about(*answer);
    const auto page = json::parse(answer->body);
    if (!page || page->find("begins") == nullptr) return complain(malformed_answer, failed);
    std::string text;
    if (after == "0") {
      // Only now: a failed request leaves no file, and an old one as it was.
      if (!is_stdout) {
        file.reset(new_file(to_));
        if (!file && errno == EEXIST) {
          return complain(to_ + " is there and stays as it is; name another file", refused);
        }
        if (!file) return complain(with_advice(to_ + ": " + std::strerror(errno), to_), failed);
        out = file.get();
      }
      text = export_head(text_of(page->find("begins")));
    }
    for (const auto& one : items_of(page->find("lines"))) {
      const auto* const line = one.find("line");
      const auto* const bytes = line ? std::get_if<std::string>(&line->is) : nullptr;
      const auto* const seq = one.find("seq");
      const auto* const number = seq ? std::get_if<std::int64_t>(&seq->is) : nullptr;
      if (bytes == nullptr || number == nullptr) return complain(malformed_answer, failed);
      text += export_line(static_cast<std::uint64_t>(*number), *bytes);
      ++lines;
    }
    if (std::fwrite(text.data(), 1, text.size(), out) != text.size()) {
      return complain(with_advice(to_ + ": " + std::strerror(errno), to_), failed);
    }
    const auto* const next = page->find("next");
    after = is_null(next) ? "" : text_of(next);
    progress->show(std::to_string(lines) + " lines exported", lines);
  }
  if (std::fflush(out) != 0)
    return complain(with_advice(to_ + ": " + std::strerror(errno), to_), failed);
  progress.reset();
  if (!is_stdout) print_exported(lines);
  return done;
}

void AuditCommand::print_exported(std::uint64_t lines) const {
  if (!json()) {
    std::printf("%llu lines in %s\n", static_cast<unsigned long long>(lines), to_.c_str());
    return;
  }
  json::Writer out;
  out.begin_object();
  out.member("file", to_);
  out.member("lines", lines);
  out.end_object();
  print_json(out.take());
}

int AuditCommand::verify() {
  if (!secret_files_.empty()) return complain("--secret-file belongs to --file", usage);
  std::string target = "/v1/audit/verify";
  add_parameter(target, "expect", expected_);
  const auto answer = [&] {
    const Progress progress("idem audit: ", "the gateway verifies");
    return ask(target, nullptr);
  }();
  if (!answer) return answer.error();
  if (answer->status != 200) return complain_about(*answer);
  const int shown = show(answer->body, print_verdict);
  return shown == done ? exit_code_of_verdict(answer->body) : shown;
}

int AuditCommand::verify_file() {
  if (secret_files_.empty()) {
    return complain("--file needs --secret-file: the hashes are made with the gateways' secret",
                    usage);
  }
  std::vector<Secret> secrets;
  for (const std::string& path : secret_files_) {
    const auto secret = read_secret_file(path);
    if (!secret) return complain("--secret-file: " + secret.error(), usage);
    secrets.push_back(*secret);
  }
  std::optional<admin::ExpectedLine> expected;
  if (!expected_.empty()) {
    expected = admin::parse_expected_line(expected_);
    if (!expected) return complain("--expect: must be SEQ:HASH", usage);
  }
  std::ifstream file(from_);
  if (!file) {
    return complain(
        with_advice("--file " + from_ + " cannot be read: " + std::strerror(errno), from_), usage);
  }
  const auto verdict = [&] {
    const Progress progress("idem audit: ", "verifies " + printable(from_));
    return verify_export(file, secrets, std::move(expected));
  }();
  if (!verdict) return complain(from_ + ": " + verdict.error(), failed);
  const int shown = show(admin::audit_verdict(*verdict), print_verdict);
  return shown != done || !verdict->first_bad ? shown : refused;
}

}  // namespace idem::cli
