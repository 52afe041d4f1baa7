#include "cli/terminal/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace idem::cli {
namespace {

constexpr std::size_t usual_columns = 80;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool obeys_sequences() {
  const auto type = variable("TERM");
  return !type.empty() && type != "dumb";
}

const char* sequence_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      break;
    case Tone::good:
      return "\x1b[32m";
    case Tone::warning:
      return "\x1b[33m";
    case Tone::bad:
      return "\x1b[31m";
  }
  return "";
}

}  // namespace

std::optional<std::size_t> terminal_columns(int descriptor) {
  if (::isatty(descriptor) == 0) return std::nullopt;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const auto text = variable("COLUMNS");
  std::size_t columns = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool is_number = error == std::errc{} && stop == text.data() + text.size();
  return is_number && columns > 0 ? columns : usual_columns;
}

bool can_rewrite_lines(int descriptor) { return ::isatty(descriptor) != 0 && obeys_sequences(); }

bool has_colours(int descriptor) {
  return can_rewrite_lines(descriptor) && variable("NO_COLOR").empty();
}

std::string in_tone(const std::string& text, Tone tone, bool colours) {
  if (!colours || tone == Tone::plain) return text;
  return sequence_of(tone) + text + "\x1b[0m";
}

std::string in_tone(const std::string& text, Tone tone, int descriptor) {
  return in_tone(text, tone, has_colours(descriptor));
}

}  // namespace idem::cli
