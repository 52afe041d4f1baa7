#include "cli/commands.hpp"
#include "cli/terminal/messages.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/exchange/problem.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

namespace idem::cli {
namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

std::string now_text() {
  const auto now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (now - seconds).count());
}

bool is_visible(char c) noexcept { return c > ' ' && c < 0x7F; }

/// Bytes outside of visible ASCII are written as numbers: terminals also obey other control
/// characters, and some characters change the order of the text.
void append_text_value(std::string& line, std::string_view value) {
  const bool plain = !value.empty() && std::ranges::all_of(value, [](char c) {
    return is_visible(c) && c != '"' && c != '\\' && c != '=';
  });
  if (plain) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (!is_visible(c) && c != ' ') {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      continue;
    }
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

Tone tone_of(LogLevel level) {
  if (level == LogLevel::info) return Tone::plain;
  return level == LogLevel::warning ? Tone::warning : Tone::bad;
}

std::string text_line(LogLevel level, std::string_view event,
                      std::initializer_list<LogField> fields, bool colours) {
  std::string line = now_text();
  line += ' ';
  line += in_tone(std::string(name_of(level)), tone_of(level), colours);
  line += ' ';
  line += event;
  for (const auto& field : fields) {
    line += ' ';
    line += field.name;
    line += '=';
    append_text_value(line, field.value);
  }
  return line;
}

std::string json_line(LogLevel level, std::string_view event,
                      std::initializer_list<LogField> fields) {
  std::string line = "{\"time\":\"" + now_text() + "\",\"level\":\"";
  line += name_of(level);
  line += "\",\"event\":";
  append_json_string(line, event);
  for (const auto& field : fields) {
    line += ',';
    append_json_string(line, field.name);
    line += ':';
    if (field.is_number) {
      line += field.value;
    } else {
      append_json_string(line, field.value);
    }
  }
  return line + "}";
}

}  // namespace

LogSink stderr_log(const std::string& format) {
  auto mutex = std::make_shared<std::mutex>();
  const bool json = format == "json";
  const bool colours = has_colours(STDERR_FILENO);
  return [mutex, json, colours](LogLevel level, std::string_view event,
                                std::initializer_list<LogField> fields) {
    const std::string line =
        (json ? json_line(level, event, fields) : text_line(level, event, fields, colours)) + "\n";
    std::lock_guard lock(*mutex);
    std::fwrite(line.data(), 1, line.size(), stderr);
  };
}

int fail_start(const char* command, const std::string& format, const LogSink& log,
               const StartFailure& failure) {
  if (format == "json") {
    log(LogLevel::error, "start_failed", {{"reason", failure.why}});
  } else {
    say_error(command, failure.why, failure.exit_code);
  }
  return failure.exit_code;
}

}  // namespace idem::cli
