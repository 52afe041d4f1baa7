#include "cli/commands/operator_command.hpp"

#include "cli/commands/approvals_print.hpp"
#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/settings/environment.hpp"
#include "cli/terminal/messages.hpp"
#include "core/bytes/percent.hpp"
#include "json/value.hpp"

#include <idem/limits.hpp>

#include <pwd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace idem::cli {
namespace {

bool is_plain(std::string_view text) {
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789._-") == std::string_view::npos;
}

std::string user_name() {
  if (const char* const name = std::getenv("USER"); name != nullptr && is_plain(name)) return name;
  // Without a login, as in a container or a job.
  const passwd* const entry = ::getpwuid(::geteuid());
  if (entry != nullptr && is_plain(entry->pw_name)) return entry->pw_name;
  return "uid" + std::to_string(::geteuid());
}

/// The operator's name by default: USER@HOST.
std::string login_name() {
  std::array<char, 256> host{};
  const bool has_host = ::gethostname(host.data(), host.size() - 1) == 0 && is_plain(host.data());
  std::string name = user_name() + (has_host ? "@" + std::string(host.data()) : std::string());
  name.resize(std::min(name.size(), limits::operator_name_bytes_max));
  return name;
}

int exit_code_of_status(int status) {
  if (status == 200) return done;
  if (status == 404) return not_found;
  if (status == 409) return refused;
  const bool is_about_login = status == 401 || status == 403;
  const bool is_for_now = status == 408 || status == 429;
  if (is_about_login || is_for_now) return failed;
  return status >= 400 && status < 500 ? usage : failed;
}

}  // namespace

OperatorCommand::OperatorCommand(const Command& program, const char* name, const char* text,
                                 const Form& form)
    : name_(form.parent.empty() ? name : form.parent + " " + name),
      command_(program.add_command(name, text)) {
  access_.operator_name = login_name();
  // A variable only: other users of the machine see the arguments of a process.
  if (const char* const token = std::getenv("IDEM_ADMIN_TOKEN"); token != nullptr) {
    access_.token = token;
  }
  if (form.has_verbs) {
    command_.require_command();
    // Verbs inherit it, but do not list the options of the command.
    command_.set_notes(
        command_.notes() +
        "\nBefore or after the verb: --admin-url, --admin-..., --json, --operator (idem " + name +
        " --help).");
  }
  // Declared once, not for each verb: the parser also reads the variables of verbs that were not
  // given, and the last one would win over the flag.
  command_.add_option("--admin-url", access_.url, "URL of the admin listener")
      .variable("IDEM_ADMIN_URL")
      .show_default();
  command_
      .add_option("--admin-token-file", access_.token_file,
                  "file with the token to log in with, instead of IDEM_ADMIN_TOKEN; by default "
                  "the one that a gateway on this machine names")
      .file()
      .variable("IDEM_ADMIN_TOKEN_FILE");
  command_
      .add_option("--admin-ca", access_.ca_file,
                  "PEM file: the CA of the admin listener's certificate; by default the system's")
      .file()
      .variable("IDEM_ADMIN_CA");
  command_
      .add_option("--admin-cert", access_.certificate_file,
                  "PEM file: a certificate to log in with")
      .file()
      .variable("IDEM_ADMIN_CERT");
  command_.add_option("--admin-key", access_.key_file, "PEM file: its key, without a passphrase")
      .file()
      .variable("IDEM_ADMIN_KEY");
  command_.add_flag("--json", json_, "print the admin API's answer unchanged");
  if (!form.decides) return;
  command_
      .add_option("--operator", access_.operator_name,
                  "who decides, for the evidence log; by default USER@HOST")
      .variable("IDEM_OPERATOR");
}

Command OperatorCommand::declare(const char* name, const char* text) {
  const Command one = command_.add_command(name, text);
  one.take_options_of_parent();  // The options of the command may follow the verb.
  return one;
}

int OperatorCommand::complain(const std::string& sentence, int code) const {
  return say_error(name_, sentence, code);
}

void OperatorCommand::warn_of_variables() const {
  for (const auto& line : misspelt_operator_variables()) {
    say_warning(name_, as_warning(line));
  }
}

std::expected<AdminAnswer, int> OperatorCommand::ask(const std::string& target,
                                                     const std::string* body) const {
  const auto fails = [&](const std::string& sentence, int code) {
    return std::unexpected(complain(sentence, code));
  };
  // The name becomes a header field of the request; a line break would end the field.
  const std::string& name = access_.operator_name;
  const bool is_name = !name.empty() && name.size() <= limits::operator_name_bytes_max &&
                       std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7F; });
  if (!is_name) {
    return fails("--operator must be one name of 1 to " +
                     std::to_string(limits::operator_name_bytes_max) +
                     " characters without blanks, in ASCII",
                 usage);
  }
  if (access_.certificate_file.empty() != access_.key_file.empty()) {
    return fails("--admin-cert and --admin-key belong together: give both files or neither", usage);
  }
  auto answer = ask_admin(access_, target, body);
  if (!answer) {
    const auto& failure = answer.error();
    if (failure.kind == AdminFailure::Kind::wrong_url) {
      return fails("--admin-url: " + failure.why, usage);
    }
    if (failure.kind == AdminFailure::Kind::wrong_token) {
      return fails("cannot log in: " + printable(failure.why) +
                       "; run this as the gateway's user, or set IDEM_ADMIN_TOKEN",
                   failed);
    }
    return fails(access_.url + " cannot be reached: " + failure.why +
                     "; is a gateway or worker running there with --admin? --admin-url or "
                     "IDEM_ADMIN_URL names another place",
                 not_reachable);
  }
  return std::move(*answer);
}

int OperatorCommand::complain_about(const AdminAnswer& answer) const {
  std::string sentence = sentence_of(answer);
  // The API names a query parameter or member; here it was an option.
  const std::size_t end = sentence.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (end != sentence.npos && end > 0 && sentence.compare(end, 2, ": ") == 0) {
    std::string option = "--" + sentence.substr(0, end);
    std::ranges::replace(option, '_', '-');
    const auto has_it = [&](const Command& one) { return one.has_option(option); };
    const auto verbs = command_.given_commands();
    if (has_it(command_) || std::ranges::any_of(verbs, has_it)) sentence.replace(0, end, option);
  }
  return complain(sentence, exit_code_of_status(answer.status));
}

int OperatorCommand::finish(const std::string& target, const std::string* body,
                            bool (*print)(const std::string& json)) {
  const auto answer = ask(target, body);
  if (!answer) return answer.error();
  if (answer->status == 202) return say_that_it_waits(*answer);
  if (answer->status != 200) return complain_about(*answer);
  return show(answer->body, print);
}

int OperatorCommand::say_that_it_waits(const AdminAnswer& answer) const {
  const auto approval = json::parse(answer.body);
  const auto* const id = approval ? approval->find("approval") : nullptr;
  if (id == nullptr) return complain(malformed_answer, failed);
  const int shown = show(answer.body, print_approval);
  if (shown != done) return shown;
  return complain(
      "nothing is done yet: another operator has to approve it, with idem approvals "
      "approve " +
          text_of(id) + " --reason WHY",
      refused);
}

int OperatorCommand::show(const std::string& json, bool (*print)(const std::string& json)) const {
  if (json_) {
    print_json(json);
  } else if (!print(json)) {
    return complain(malformed_answer, failed);
  }
  return done;
}

void add_parameter(std::string& target, const char* name, const std::string& value) {
  if (value.empty()) return;
  target += target.find('?') == std::string::npos ? '?' : '&';
  target += std::string(name) + '=' + percent_encoded(value);
}

void write_header(json::Writer& out, const std::string& line) {
  const auto colon = line.find(':');
  const auto value = line.find_first_not_of(' ', std::min(colon, line.size() - 1) + 1);
  out.begin_array();
  out.text(line.substr(0, colon));
  out.text(value == std::string::npos ? "" : line.substr(value));
  out.end_array();
}

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

}  // namespace idem::cli
