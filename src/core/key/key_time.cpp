#include "core/key/key_time.hpp"

#include "core/bytes/ascii.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <array>

namespace idem {
namespace {

/// Crockford's base 32 without its aliases, which no generator writes; -1: none.
int base32_value(char c) noexcept {
  static constexpr std::string_view alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const bool is_lower = c >= 'a' && c <= 'z';
  const auto at = alphabet.find(is_lower ? static_cast<char>(c - ('a' - 'A')) : c);
  return at == alphabet.npos ? -1 : static_cast<int>(at);
}

ClientTime of_millis(std::int64_t since_epoch) noexcept { return ClientTime(Millis(since_epoch)); }

// 8-4-4-4-12 hex digits; the first twelve are the milliseconds, the next one the version, and the
// two highest bits of the fourth group are 10.
std::optional<ClientTime> time_of_uuid(std::string_view key) noexcept {
  std::int64_t millis = 0;
  int digits = 0;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (key[i] != '-') return std::nullopt;
      continue;
    }
    const int value = hex_value(key[i]);
    if (value < 0) return std::nullopt;
    if (digits++ < 12) millis = millis * 16 + value;
  }
  if (key[14] != '7' || hex_value(key[19]) >> 2 != 0b10) return std::nullopt;
  return of_millis(millis);
}

// 26 characters: ten of time, sixteen random. The first one holds three bits only.
std::optional<ClientTime> time_of_ulid(std::string_view key) noexcept {
  if (key[0] > '7' || std::ranges::all_of(key, is_digit)) return std::nullopt;
  std::int64_t millis = 0;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int value = base32_value(key[i]);
    if (value < 0) return std::nullopt;
    if (i < 10) millis = millis * 32 + value;
  }
  return of_millis(millis);
}

/// The number that these digits make; -1: not all are digits.
int number(std::string_view text) noexcept {
  int value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

/// The place of `name` in the list; the list's length if it is not there.
template <std::size_t Count>
std::size_t place_of(std::string_view name, const std::array<std::string_view, Count>& names) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

std::optional<ClientTime> time_of_key(std::string_view key) noexcept {
  if (key.size() == 36) return time_of_uuid(key);
  if (key.size() == 26) return time_of_ulid(key);
  return std::nullopt;
}

std::optional<ClientTime> parse_imf_fixdate(std::string_view text) noexcept {
  static constexpr std::array<std::string_view, 7> days{"Sun", "Mon", "Tue", "Wed",
                                                        "Thu", "Fri", "Sat"};
  static constexpr std::array<std::string_view, 12> months{
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  static constexpr std::string_view form = "DDD, 00 MMM 0000 00:00:00 GMT";
  if (text.size() != form.size()) return std::nullopt;
  const auto same = [&](std::size_t from, std::size_t count) {
    return text.substr(from, count) == form.substr(from, count);
  };
  const bool is_framed = same(3, 2) && same(7, 1) && same(11, 1) && same(16, 1) && same(19, 1) &&
                         same(22, 1) && same(25, 4);
  const auto day_of_week = place_of(text.substr(0, 3), days);
  const auto month = place_of(text.substr(8, 3), months);
  const int day = number(text.substr(5, 2));
  const int year = number(text.substr(12, 4));
  const int hour = number(text.substr(17, 2));
  const int minute = number(text.substr(20, 2));
  const int second = number(text.substr(23, 2));
  const bool is_numbered = day >= 1 && year >= 0 && hour >= 0 && hour < 24 && minute >= 0 &&
                           minute < 60 && second >= 0 && second < 60;
  if (!is_framed || !is_numbered || month == months.size()) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month) + 1),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  const std::chrono::sys_days midnight = date;
  if (std::chrono::weekday(midnight).c_encoding() != day_of_week) return std::nullopt;
  return midnight + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

ClientTimeIs judge(ClientTime time, Millis age_max, ClientTime now) noexcept {
  if (now - time > age_max) return ClientTimeIs::too_old;
  return time - now > limits::key_time_skew ? ClientTimeIs::ahead : ClientTimeIs::fine;
}

}  // namespace idem
