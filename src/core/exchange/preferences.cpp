#include "core/exchange/preferences.hpp"

#include "core/exchange/policy.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem {
namespace {

using std::chrono::seconds;

bool is_space(char c) noexcept { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes what comes before the next `separator` outside of a quoted string, and drops that.
std::string_view take_until(std::string_view& rest, char separator) noexcept {
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

/// The inside of a quoted string, where that holds no escape: no number needs one.
std::string_view unquoted(std::string_view word) noexcept {
  const bool quoted = word.size() >= 2 && word.front() == '"' && word.back() == '"';
  return quoted ? word.substr(1, word.size() - 2) : word;
}

/// Takes the next preference off a line; `name` is what it is called.
std::string_view take_preference(std::string_view& line, std::string_view& name) noexcept {
  const std::string_view whole = take_until(line, ',');
  std::string_view rest = whole;
  const std::string_view word = take_until(rest, ';');
  name = trimmed(word.substr(0, std::min(word.find('='), word.size())));
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
    std::string_view preference = take_until(line, ',');
    std::string_view word = take_until(preference, ';');  // Parameters mean nothing here.
    const auto equals = std::min(word.find('='), word.size());
    if (!equal_names(trimmed(word.substr(0, equals)), "wait")) continue;
    seen_ = true;
    if (equals < word.size()) value_ = delta_seconds(unquoted(trimmed(word.substr(equals + 1))));
  }
}

WaitRule wait_rule(Millis by_itself, Millis time_max, std::optional<seconds> preferred) noexcept {
  if (!preferred) return {std::min(by_itself, time_max), std::nullopt};
  const Millis time = std::min<Millis>(*preferred, time_max);
  if (time == Millis{0} && *preferred > seconds{0}) return {time, std::nullopt};
  return {time, std::chrono::floor<seconds>(time)};
}

}  // namespace idem
