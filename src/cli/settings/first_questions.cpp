#include "cli/settings/first_questions.hpp"

#include "cli/settings/config_check.hpp"
#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <functional>
#include <istream>
#include <optional>
#include <ostream>
#include <string>

namespace idem::cli {
namespace {

struct Question {
  std::string_view flag;
  /// What it means, on one line for each choice. Empty: what the table of settings says.
  std::string_view about{};
  /// Taken for an empty answer. Empty: an answer is needed, for which `example` is one.
  std::string_view initial{};
  std::string_view example{};
  /// An empty answer leaves the setting out.
  bool optional = false;
};

constexpr Question of_upstream{.flag = "--upstream", .example = "http://127.0.0.1:9000"};
constexpr Question of_store{.flag = "--store"};
constexpr Question of_scope{
    .flag = "--scope",
    .about =
        "who owns a key: two owners may use the same key, and none gets another's answer\n"
        "  static:NAME    one owner for all requests, such as static:my-api\n"
        "  authorization  the holder of the API key or password in Authorization\n"
        "  header:NAME    the tenant that a trusted proxy names, such as header:X-Tenant-Id\n"
        "  jwt:CLAIM      the tenant that a token names, such as jwt:sub\n"
        "  mtls           the holder of the client's certificate",
    .example = "static:my-api"};

const std::vector<Question> of_header{{.flag = "--trusted-proxy", .initial = "127.0.0.1/32"}};
const std::vector<Question> of_jwt{
    {.flag = "--jwt-algorithm", .initial = "RS256"},
    {.flag = "--jwt-jwks-file", .example = "jwks.json"},
    {.flag = "--jwt-issuer", .example = "https://login.example"},
    {.flag = "--jwt-audience", .example = "https://api.example", .optional = true},
};
const std::vector<Question> of_mtls{{.flag = "--tls-cert", .example = "server.pem"},
                                    {.flag = "--tls-key", .example = "server.key"},
                                    {.flag = "--tls-client-ca", .example = "clients-ca.pem"}};

/// What the scope needs besides itself.
std::vector<Question> questions_of(const std::string& scope_text) {
  if (scope_text.starts_with("header:")) return of_header;
  if (scope_text.starts_with("jwt:")) return of_jwt;
  return scope_text == "mtls" ? of_mtls : std::vector<Question>{};
}

config::Setting setting_of(GatewayFlags& flags, std::string_view flag) {
  const auto table = settings_of(flags);
  return *std::ranges::find(table, flag, &config::Setting::flag);
}

class Interview {
 public:
  Interview(GatewayFlags& flags, std::istream& in, std::ostream& out)
      : flags_(flags), in_(in), out_(out) {}

  /// Asks `first` and what follows from its answer until nothing is wrong with them. After a wrong
  /// answer it goes back to that question, and no further.
  bool ask_all(const Question& first) {
    if (is_given(first)) return true;
    std::vector<Question> questions{first};
    std::vector<GatewayFlags> before;
    while (true) {
      while (before.size() < questions.size()) {
        before.push_back(flags_);
        if (!ask(questions[before.size() - 1])) return false;
        if (before.size() == 1) questions = with_what_follows(first);
      }
      std::size_t right = 0;
      while (right < questions.size() && is_right(questions[right])) ++right;
      if (right == questions.size()) return true;
      flags_ = before[right];
      before.resize(right);
    }
  }

 private:
  bool is_given(const Question& question) {
    return config::given_at(setting_of(flags_, question.flag)) != nullptr;
  }

  /// False: the input ended.
  bool ask(const Question& question) {
    const auto setting = setting_of(flags_, question.flag);
    const auto* const given = std::get_if<Given*>(&setting.slot);
    const bool has_default = question.initial.empty() && given != nullptr;
    const std::string initial(has_default ? (*given)->text : question.initial);
    const auto about = question.about.empty() ? setting.help : question.about;
    out_ << '\n' << setting.path << ": " << about << '\n';
    while (true) {
      prompt(question, initial);
      std::string line;
      if (!std::getline(in_, line) || in_.eof()) return false;
      const std::string answer(trimmed(line, " \t\r"));
      if (!answer.empty()) {
        give(flags_, question.flag, answer);
        return true;
      }
      // The table's own default stays one: the file may then be moved with its store.
      if (!question.initial.empty()) give(flags_, question.flag, initial);
      if (!initial.empty() || question.optional) return true;
      out_ << question.flag << ": an answer is needed, because there is no default\n";
    }
  }

  void prompt(const Question& question, const std::string& initial) {
    out_ << question.flag;
    if (!initial.empty()) {
      out_ << " [" << initial << "]: ";
    } else {
      out_ << ", such as " << question.example
           << (question.optional ? " [none]: " : " (no default): ");
    }
    out_.flush();
  }

  std::vector<Question> with_what_follows(const Question& first) {
    std::vector<Question> questions{first};
    if (first.flag != of_scope.flag) return questions;
    for (const Question& next : questions_of(flags_.caller.scope.text)) {
      if (!is_given(next)) questions.push_back(next);
    }
    return questions;
  }

  /// Otherwise it prints why. What is asked later may still be missing.
  bool is_right(const Question& asked) {
    bool is_right = true;
    for (const std::string& line : complaints_about(flags_)) {
      if (!line.starts_with(std::string(asked.flag) + ": ")) continue;
      out_ << line << '\n';
      is_right = false;
    }
    return is_right;
  }

  GatewayFlags& flags_;
  std::istream& in_;
  std::ostream& out_;
};

}  // namespace

std::vector<std::string_view> missing_flags(const GatewayFlags& flags) {
  std::vector<std::string_view> missing;
  if (flags.upstream.text.empty()) missing.push_back(of_upstream.flag);
  if (flags.caller.scope.text.empty()) missing.push_back(of_scope.flag);
  return missing;
}

bool ask_for_settings(GatewayFlags& flags, std::istream& in, std::ostream& out) {
  Interview interview(flags, in, out);
  return interview.ask_all(of_upstream) && interview.ask_all(of_scope) &&
         interview.ask_all(of_store);
}

}  // namespace idem::cli
