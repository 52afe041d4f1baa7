#include "core/bytes/ascii.hpp"

#include <idem/key.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace idem::inline v0_1 {
namespace {

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_alnum(char c) noexcept { return is_digit(c) || is_letter(c); }

/// local@label.tld somewhere, with at least two letters at its end.
bool has_email(std::string_view key) noexcept {
  const auto is_local = [](char c) {
    return is_alnum(c) || std::string_view("._%+-").find(c) != std::string_view::npos;
  };
  for (auto at = key.find('@'); at != std::string_view::npos; at = key.find('@', at + 1)) {
    if (at == 0 || !is_local(key[at - 1])) continue;
    const auto domain = key.substr(at + 1);
    std::size_t letters = 0;  // Of the label that is being read.
    bool dotted = false;
    for (const char c : domain) {
      if (c == '.') {
        dotted = true;
        letters = 0;
      } else if (is_letter(c)) {
        if (++letters >= 2 && dotted) return true;
      } else if (is_digit(c) || c == '-') {
        letters = 0;
      } else {
        break;
      }
    }
  }
  return false;
}

struct Run {
  std::array<std::uint8_t, 20> digits{};
  std::size_t count = 0;  ///< One more than `digits` holds: too many.
  std::size_t end = 0;
};

/// The digits from `at`, each at most one separator from the next.
Run digits_from(std::string_view key, std::size_t at, std::string_view separators) noexcept {
  Run run;
  for (run.end = at; at < key.size(); ++at) {
    if (is_digit(key[at])) {
      if (run.count < run.digits.size()) {
        run.digits[run.count] = static_cast<std::uint8_t>(key[at] - '0');
      }
      run.count = std::min(run.count + 1, run.digits.size() + 1);
      run.end = at + 1;
    } else if (separators.find(key[at]) == std::string_view::npos || at > run.end) {
      break;
    }
  }
  return run;
}

/// ISO/IEC 7812-1 annex B.
bool has_right_check_digit(const Run& run) noexcept {
  int sum = 0;
  for (std::size_t i = 0; i < run.count; ++i) {
    int value = run.digits[run.count - 1 - i];
    if (i % 2 == 1) value = value * 2 > 9 ? value * 2 - 9 : value * 2;
    sum += value;
  }
  return sum % 10 == 0;
}

/// The ranges of the large schemes, with their lengths.
bool has_issuer(const Run& run) noexcept {
  const int two = run.digits[0] * 10 + run.digits[1];
  const int four = two * 100 + run.digits[2] * 10 + run.digits[3];
  const auto n = run.count;
  if (run.digits[0] == 4) return n == 13 || n == 16 || n == 19;
  if (two == 34 || two == 37) return n == 15;
  if ((two >= 51 && two <= 55) || (four >= 2221 && four <= 2720)) return n == 16;
  if (two == 30 || two == 36 || two == 38 || two == 39) return n >= 14;
  if (two == 35 || two == 62 || two == 65 || four == 6011 || (four >= 6440 && four <= 6499)) {
    return n >= 16;
  }
  return false;
}

bool has_card(std::string_view key) noexcept {
  for (std::size_t at = 0; at < key.size(); ++at) {
    const bool begins = is_digit(key[at]) && (at == 0 || !is_alnum(key[at - 1]));
    if (!begins) continue;
    const Run run = digits_from(key, at, " -");
    const bool ends = run.end == key.size() || !is_alnum(key[run.end]);
    if (ends && run.count >= 13 && run.count <= 19 && has_issuer(run) &&
        has_right_check_digit(run)) {
      return true;
    }
  }
  return false;
}

/// 212-555-0123, (212) 555-0123 and the like: groups of 3, 3 and 4 with something between them.
bool is_north_american(std::string_view rest) noexcept {
  static constexpr std::array<int, 3> groups{3, 3, 4};
  std::size_t at = 0;
  if (rest.starts_with('(')) ++at;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (int i = 0; i < groups[group]; ++i, ++at) {
      if (at >= rest.size() || !is_digit(rest[at])) return false;
    }
    if (group == groups.size() - 1) break;
    const auto before = at;
    while (at < rest.size() && at - before < 2 &&
           std::string_view(") .-").find(rest[at]) != std::string_view::npos) {
      ++at;
    }
    if (at == before) return false;
  }
  return at == rest.size() || !(is_alnum(rest[at]) || rest[at] == '-');
}

bool has_phone(std::string_view key) noexcept {
  for (std::size_t at = 0; at < key.size(); ++at) {
    const bool begins = at == 0 || !(is_alnum(key[at - 1]) || key[at - 1] == '-');
    if (!begins) continue;
    if (key[at] == '+' && at + 1 < key.size() && is_digit(key[at + 1])) {
      const Run run = digits_from(key, at + 1, " -.()");
      const bool ends = run.end == key.size() || !is_alnum(key[run.end]);
      if (ends && run.count >= 7 && run.count <= 15) return true;
    }
    if ((is_digit(key[at]) || key[at] == '(') && is_north_american(key.substr(at))) return true;
  }
  return false;
}

/// 8-4-4-4-12 hexadecimal digits.
bool is_uuid(std::string_view key) noexcept {
  if (key.size() != 36) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? key[i] != '-' : hex_value(key[i]) < 0) return false;
  }
  return true;
}

}  // namespace

PersonalData looks_like(std::string_view key) noexcept {
  if (is_uuid(key)) return PersonalData::none;
  if (has_email(key)) return PersonalData::email;
  if (has_card(key)) return PersonalData::card;
  return has_phone(key) ? PersonalData::phone : PersonalData::none;
}

}  // namespace idem::inline v0_1
