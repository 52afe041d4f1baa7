#include "cli/commands/console_command.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"

#include <cstdio>
#include <cstdlib>

namespace idem::cli {

ConsoleCommand::ConsoleCommand(const Command& program)
    : OperatorCommand(program, "console",
                      "Print the console's address, which logs a browser in once, within two "
                      "minutes",
                      {.has_verbs = false, .decides = false}) {}

int ConsoleCommand::run() {
  const std::string body = "{}";
  const auto answer = ask("/v1/session/codes", &body);
  if (!answer) return answer.error();
  if (answer->status != 200) return complain_about(*answer);
  const auto made = json::parse(answer->body);
  const auto* const code = made ? made->find("code") : nullptr;
  if (code == nullptr) return complain(malformed_answer, failed);
  std::string url = admin_url();
  while (url.ends_with('/')) url.pop_back();
  // Behind the number sign: a browser sends that part to nobody.
  url += "/#/login?code=" + text_of(code);
  if (json()) {
    json::Writer out;
    out.begin_object();
    out.member("url", url);
    out.member("seconds", std::atoll(text_of(made->find("seconds")).c_str()));
    out.end_object();
    print_json(out.take());
    return done;
  }
  std::printf("%s\n", url.c_str());
  std::fprintf(stderr, "It logs one browser in, within %s s.\n",
               text_of(made->find("seconds")).c_str());
  return done;
}

}  // namespace idem::cli
