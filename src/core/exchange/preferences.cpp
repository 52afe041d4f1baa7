#include "core/exchange/preferences.hpp"

#include "core/bytes/ascii.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem {
namespace {

using std::chrono::seconds;

/// Removes and returns the text before the next `separator` outside of a quoted string; removes the
/// separator, too.
std::string_view take_until_unquoted(std::string_view& rest, char separator) noexcept {
  bool quoted = false;
  std::size_t at = 0;
  for (; at < rest.size(); ++at) {
    if (quoted && rest[at] == '\\') {
      ++at;
    } else if (rest[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && rest[at] == separator) {
      break;
    }
  }
  at = std::min(at, rest.size());
  const auto taken = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return taken;
}

/// Without the quotes of a quoted string. Escapes stay: no number needs one.
std::string_view unquoted(std::string_view text) noexcept {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// Removes and returns the next preference of a line, and its name.
std::string_view take_preference(std::string_view& line, std::string_view& name) noexcept {
  const std::string_view whole = take_until_unquoted(line, ',');
  std::string_view rest = whole;
  const std::string_view pair = take_until_unquoted(rest, ';');
  name = trimmed(pair.substr(0, std::min(pair.find('='), pair.size())));
  return trimmed(whole);
}

}  // namespace

std::optional<seconds> delta_seconds(std::string_view digits) noexcept {
  if (digits.empty()) return std::nullopt;
  constexpr seconds most = std::chrono::duration_cast<seconds>(limits::duration_max);
  seconds value{0};
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = std::min(most, value * 10 + seconds(c - '0'));
  }
  return value;
}

bool prefers_async(std::string_view line) noexcept {
  while (!line.empty()) {
    std::string_view name;
    take_preference(line, name);
    if (equal_names(name, "respond-async")) return true;
  }
  return false;
}

std::string without_met(std::string_view line) {
  std::string kept;
  while (!line.empty()) {
    std::string_view name;
    const std::string_view preference = take_preference(line, name);
    if (preference.empty() || equal_names(name, "respond-async") || equal_names(name, "wait")) {
      continue;
    }
    if (!kept.empty()) kept += ", ";
    kept += preference;
  }
  return kept;
}

void PreferredWait::read(std::string_view line) noexcept {
  while (!line.empty() && !seen_) {
    std::string_view preference = take_until_unquoted(line, ',');
    std::string_view pair = take_until_unquoted(preference, ';');  // Parameters mean nothing here.
    const auto equals = std::min(pair.find('='), pair.size());
    if (!equal_names(trimmed(pair.substr(0, equals)), "wait")) continue;
    seen_ = true;
    if (equals < pair.size()) value_ = delta_seconds(unquoted(trimmed(pair.substr(equals + 1))));
  }
}

WaitRule wait_rule(Millis by_itself, Millis time_max, std::optional<seconds> preferred) noexcept {
  if (!preferred) return {std::min(by_itself, time_max), std::nullopt};
  const Millis time = std::min<Millis>(*preferred, time_max);
  if (time == Millis{0} && *preferred > seconds{0}) return {time, std::nullopt};
  return {time, std::chrono::floor<seconds>(time)};
}

}  // namespace idem
