#include "core/bytes/rfc3339.hpp"

namespace idem {
namespace {

void append_number(std::string& out, std::int64_t value, int digits) {
  std::string text(static_cast<std::size_t>(digits), '0');
  for (auto at = text.rbegin(); at != text.rend(); ++at, value /= 10) {
    *at = static_cast<char>('0' + value % 10);
  }
  out += text;
}

/// Reads from the front of a text; after the first error complete() is false.
class Reading {
 public:
  explicit Reading(std::string_view text) : rest_(text) {}

  int number(std::size_t digits) {
    if (rest_.size() < digits) return fail();
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) value = value * 10 + digit();
    return value;
  }
  char one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) {
      fail();
      return 0;
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  /// The fraction behind the seconds, if there is one.
  Millis fraction() {
    if (!rest_.starts_with('.')) return Millis(0);
    rest_.remove_prefix(1);
    int value = 0;
    int seen = 0;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      const int next = digit();
      if (++seen <= 3) value = value * 10 + next;
    }
    if (seen == 0) fail();
    for (int i = seen; i < 3; ++i) value *= 10;
    return Millis(value);
  }
  bool complete() const { return good_ && rest_.empty(); }

 private:
  int fail() {
    good_ = false;
    return 0;
  }
  int digit() {
    if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return fail();
    const int value = rest_.front() - '0';
    rest_.remove_prefix(1);
    return value;
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

std::string to_rfc3339(StoreTime moment) {
  const auto day = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date(day);
  std::int64_t rest = (moment - day).count();
  std::string text;
  append_number(text, static_cast<int>(date.year()), 4);
  text += '-';
  append_number(text, static_cast<unsigned>(date.month()), 2);
  text += '-';
  append_number(text, static_cast<unsigned>(date.day()), 2);
  text += 'T';
  append_number(text, rest / 3'600'000, 2);
  text += ':';
  append_number(text, rest / 60'000 % 60, 2);
  text += ':';
  append_number(text, rest / 1'000 % 60, 2);
  text += '.';
  append_number(text, rest % 1'000, 3);
  return text + 'Z';
}

std::optional<StoreTime> parse_rfc3339(std::string_view text) {
  Reading in(text);
  const std::chrono::year year(in.number(4));
  in.one_of("-");
  const std::chrono::month month(static_cast<unsigned>(in.number(2)));
  in.one_of("-");
  const std::chrono::day day(static_cast<unsigned>(in.number(2)));
  in.one_of("Tt");
  const std::chrono::hours hours(in.number(2));
  in.one_of(":");
  const std::chrono::minutes minutes(in.number(2));
  in.one_of(":");
  const std::chrono::seconds seconds(in.number(2));
  const Millis fraction = in.fraction();
  std::chrono::minutes offset{0};
  const char zone = in.one_of("Zz+-");
  if (zone == '+' || zone == '-') {
    const std::chrono::hours zone_hours(in.number(2));
    in.one_of(":");
    const std::chrono::minutes zone_minutes(in.number(2));
    if (zone_hours.count() > 23 || zone_minutes.count() > 59) return std::nullopt;
    offset = zone_hours + zone_minutes;
    if (zone == '-') offset = -offset;
  }
  const std::chrono::year_month_day date(year, month, day);
  const bool is_time = hours.count() < 24 && minutes.count() < 60 && seconds.count() < 60;
  if (!in.complete() || !date.ok() || !is_time) return std::nullopt;
  return StoreTime(std::chrono::sys_days(date).time_since_epoch()) + hours + minutes + seconds +
         fraction - offset;
}

}  // namespace idem
