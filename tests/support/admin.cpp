#include "support/admin.hpp"

namespace idem::test {

double metric_at(const std::string& admin, const std::string& sample) {
  const auto answer =
      send_once(admin, {.method = "GET", .target = "/metrics", .fields = {{"Host", admin}}});
  EXPECT_EQ(answer.status, 200);
  const auto at = ("\n" + answer.body).find("\n" + sample + " ");
  if (at == std::string::npos) return -1;
  return std::strtod(answer.body.c_str() + at + sample.size() + 1, nullptr);
}

void until_waiting(const std::string& admin, int count) {
  const auto until = std::chrono::steady_clock::now() + patience;
  double waiting = -1;
  do {
    waiting = metric_at(admin, "idem_waiting_requests");
  } while (waiting != count && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(waiting, count);
}

Ran run_program(const std::filesystem::path& program, std::vector<std::string> arguments,
                std::vector<std::string> environment) {
  Process process({.program = program,
                   .arguments = std::move(arguments),
                   .environment = std::move(environment)});
  process.wait_for_line("\x01");  // Comes never: until everything was printed.
  const int code = process.exit_code();
  return {code, process.output()};
}

}  // namespace idem::test
