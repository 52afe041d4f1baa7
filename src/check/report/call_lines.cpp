#include "check/report/call_lines.hpp"

#include "check/report/escape.hpp"
#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <array>

namespace idem::check {
namespace {

constexpr std::size_t first_line_bytes_max = 200;
// A terminal shows a line of it; the rest is for those that are wide.
constexpr std::size_t line_bytes_max = 1'000;
// Two lines of a key, a marker, Location and Retry-After; more is an API's mischief.
constexpr std::size_t fields_max = 8;
// Names such as "TE" are parts of words of the detail.
constexpr std::size_t named_field_bytes_min = 4;

bool contains(std::string_view text, std::string_view part) {
  return !std::ranges::search(text, part, {}, lower_letter, lower_letter).empty();
}

/// Takes the first line off, with its CR LF or LF.
std::string_view take_line(std::string_view& rest) {
  std::string_view line = take_until(rest, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool matters(std::string_view field, const Report& report, const CaseResult& finding) {
  constexpr std::array<std::string_view, 2> always{"location", "retry-after"};
  const std::string_view name = field.substr(0, field.find(':'));
  if (contains(name, "idempoten")) return true;
  if (!report.key_mark.empty() && field.contains(report.key_mark)) return true;
  if (std::ranges::any_of(
          always, [&](auto one) { return std::ranges::equal(one, name, {}, {}, lower_letter); }))
    return true;
  return name.size() >= named_field_bytes_min && contains(finding.detail, name);
}

std::string line_text(std::string_view line) {
  return printable(beginning_of(line, line_bytes_max));
}

}  // namespace

std::string first_line_of(std::string_view message) {
  return printable(beginning_of(take_line(message), first_line_bytes_max));
}

std::vector<std::string> lines_that_matter(std::string_view message, const Report& report,
                                           const CaseResult& finding) {
  std::vector<std::string> lines;
  if (message.empty()) return lines;
  lines.push_back(line_text(take_line(message)));
  while (!message.empty()) {
    const std::string_view field = take_line(message);
    if (field.empty()) break;
    if (lines.size() <= fields_max && matters(field, report, finding)) {
      lines.push_back(line_text(field));
    }
  }
  std::string body = line_text(message);
  if (!body.empty()) lines.push_back(std::move(body));
  return lines;
}

}  // namespace idem::check
