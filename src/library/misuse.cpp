#include "library/misuse.hpp"

#include "core/bytes/last_words.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace idem::library {
namespace {

/// Text that stays one line between quotes.
std::string shown(std::string text) {
  std::ranges::replace(text, '"', '\'');
  std::ranges::replace_if(text, [](char c) { return c >= 0 && (c < ' ' || c == 127); }, ' ');
  return text;
}

void to_stderr(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level == LogLevel::info) return;
  std::string line = level == LogLevel::error ? "idem: error " : "idem: warning ";
  line += event;
  for (const LogField& field : fields) {
    line.append(" ").append(field.name).append("=\"").append(shown(field.value)).append("\"");
  }
  write_stderr_line(line);  // One call: lines of several threads stay whole.
}

}  // namespace

void misused(const std::string& sentence) noexcept {
  say_last_words("idem: " + sentence);
  std::abort();
}

LogSink log_or_stderr(LogSink log) { return log ? std::move(log) : LogSink(to_stderr); }

std::string thrown_by(std::string_view what) {
  std::string text;
  if (!std::current_exception()) return std::string(what) + " threw";
  try {
    throw;
  } catch (const std::exception& thrown) {
    text = thrown.what();
  } catch (...) {
    text = "something that is no std::exception";
  }
  return std::string(what) + " threw: " + text.substr(0, limits::delivery_error_bytes_max);
}

std::string thrown_by(std::string_view what, const std::string& failure) {
  std::string text = thrown_by(what);
  return failure.empty() ? text : text + "; its transaction had failed: " + failure;
}

}  // namespace idem::library
