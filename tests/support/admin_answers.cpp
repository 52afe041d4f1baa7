#include "support/admin_answers.hpp"

#include "core/bytes/json_string.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

namespace idem::test {
namespace {

struct Noted {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> token_files;  ///< By addresses.
};

const std::filesystem::path folder = std::filesystem::path(IDEM_BIN_DIR) / "../admin-answers";

Noted& noted() {
  static Noted all;
  return all;
}

std::string running_test() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return test == nullptr ? std::string{}
                         : fmt::format("{}.{}", test->test_suite_name(), test->name());
}

void append_member(std::string& line, std::string_view name, std::string_view text) {
  line += fmt::format(R"("{}":)", name);
  append_json_string(line, text);
  line += ',';
}

}  // namespace

void watch_admin(std::string_view address, std::string_view token_file) {
  const std::lock_guard lock(noted().mutex);
  noted().token_files.insert_or_assign(std::string(address), std::string(token_file));
}

void forget_admin(std::string_view address) {
  const std::lock_guard lock(noted().mutex);
  const auto found = noted().token_files.find(address);
  if (found != noted().token_files.end()) noted().token_files.erase(found);
}

std::string operator_login(std::string_view address) {
  const std::lock_guard lock(noted().mutex);
  const auto found = noted().token_files.find(address);
  if (found == noted().token_files.end() || found->second.empty()) return {};
  std::ifstream file(found->second);
  std::string token;
  std::getline(file, token);
  return "Bearer " + token;
}

void note_answer(std::string_view address, const Request& request, const Response& response) {
  const std::lock_guard lock(noted().mutex);
  const bool is_whole = response.status != 0 && response.trouble.empty();
  if (!is_whole || !noted().token_files.contains(address)) return;
  if (!std::filesystem::exists(folder)) return;
  std::string line = "{";
  append_member(line, "test", running_test());
  append_member(line, "method", request.method);
  append_member(line, "target", request.target);
  append_member(line, "type", response.get("Content-Type").value_or(""));
  append_member(line, "body", response.body);
  line += fmt::format("\"status\":{}}}\n", response.status);
  std::ofstream(folder / fmt::format("{}.jsonl", ::getpid()), std::ios::app) << line;
}

}  // namespace idem::test
