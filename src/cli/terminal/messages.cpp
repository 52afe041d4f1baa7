#include "cli/terminal/messages.hpp"

#include "cli/terminal/progress.hpp"
#include "cli/terminal/terminal.hpp"

#include <unistd.h>

#include <cstdio>

namespace idem::cli {

int say_error(std::string_view command, const std::string& sentence, int code) {
  const std::string who = "idem" + std::string(command.empty() ? "" : " ") + std::string(command);
  return say_error_of(who, sentence, code);
}

int say_error_of(std::string_view program, const std::string& sentence, int code) {
  erase_progress();
  const std::string who = std::string(program) + ":";
  const std::string line = in_tone(who, Tone::bad, STDERR_FILENO) + " " + sentence + "\n";
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
