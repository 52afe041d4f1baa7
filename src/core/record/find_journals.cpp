#include "core/record/find_journals.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/digests.hpp"
#include "core/bytes/hex.hpp"

#include <algorithm>

namespace idem {
namespace {

constexpr std::size_t day_digits = 8;
constexpr std::size_t ref_digits = 32;

std::string padded(unsigned number, std::size_t digits) {
  std::string text = std::to_string(number);
  if (text.size() < digits) text.insert(0, digits - text.size(), '0');
  return text;
}

}  // namespace

FindName find_name(const Secret& secret, std::string_view value) {
  thread_local KeyedDigest digest("idem find value");
  const Digest full = digest.of(secret, value);
  FindName name;
  std::copy_n(full.begin(), name.size(), name.begin());
  return name;
}

std::string find_day(StoreTime at) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(at));
  // Four digits: the names of later years would not lie behind those of earlier ones.
  const int year = std::clamp(static_cast<int>(day.year()), 0, 9999);
  return padded(static_cast<unsigned>(year), 4) + padded(static_cast<unsigned>(day.month()), 2) +
         padded(static_cast<unsigned>(day.day()), 2);
}

std::string find_journal(std::string_view day, const FindName& name) {
  return std::string(find_journals).append(day) + "/" + to_hex(name);
}

std::string_view day_of_find_journal(std::string_view journal) noexcept {
  if (!journal.starts_with(find_journals)) return {};
  const auto rest = journal.substr(find_journals.size());
  if (rest.size() <= day_digits || rest[day_digits] != '/') return {};
  const auto day = rest.substr(0, day_digits);
  return std::ranges::all_of(day, is_digit) ? day : std::string_view();
}

// '0' is the character behind '/'.
std::string behind_find_day(std::string_view day) {
  return std::string(find_journals).append(day) + "0";
}

std::string FindLine::text() const { return to_hex(id.bytes) + " " + found_by; }

std::optional<FindLine> FindLine::parse(std::string_view text) {
  if (text.size() <= ref_digits + 1 || text[ref_digits] != ' ') return std::nullopt;
  const auto id = parse_handle(text.substr(0, ref_digits));
  if (!id) return std::nullopt;
  return FindLine{*id, std::string(text.substr(ref_digits + 1))};
}

std::string FindNote::text() const {
  if (!is_on) return "off";
  std::string text = "on";
  for (const auto& pointer : requests) text.append("\n").append(found_in_request).append(pointer);
  for (const auto& pointer : answers) text.append("\n").append(found_in_answer).append(pointer);
  return text;
}

FindNote FindNote::parse(std::string_view text) {
  FindNote note;
  note.is_on = take_until(text, '\n') == "on";
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    if (line.starts_with(found_in_request)) {
      note.requests.emplace_back(line.substr(found_in_request.size()));
    } else if (line.starts_with(found_in_answer)) {
      note.answers.emplace_back(line.substr(found_in_answer.size()));
    }
  }
  return note;
}

}  // namespace idem
