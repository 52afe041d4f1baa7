#include "cli/terminal/messages.hpp"

#include "cli/terminal/progress.hpp"
#include "cli/terminal/terminal.hpp"

#include <unistd.h>

#include <cstdio>

namespace idem::cli {

namespace {

std::string program_of(std::string_view command) {
  return "idem" + std::string(command.empty() ? "" : " ") + std::string(command);
}

std::string line_of(std::string_view program, const std::string& sentence) {
  return in_tone(std::string(program) + ":", Tone::bad, STDERR_FILENO) + " " + sentence + "\n";
}

}  // namespace

std::string error_line(std::string_view command, const std::string& sentence) {
  return line_of(program_of(command), sentence);
}

int say_error(std::string_view command, const std::string& sentence, int code) {
  return say_error_of(program_of(command), sentence, code);
}

int say_error_of(std::string_view program, const std::string& sentence, int code) {
  erase_progress();
  const std::string line = line_of(program, sentence);
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

void say_warning(std::string_view command, const std::string& line) {
  static constexpr std::string_view mark = ": warning: ";
  erase_progress();
  std::string text = line;
  if (const auto at = text.find(mark); at != text.npos) {
    text.replace(at + 2, mark.size() - 3, in_tone("warning:", Tone::warning, STDERR_FILENO));
  }
  if (!command.empty()) text.insert(0, "idem " + std::string(command) + ": ");
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace idem::cli
