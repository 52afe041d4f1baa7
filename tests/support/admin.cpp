#include "support/admin.hpp"

namespace idem::test {

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
