#include "admin/audit_query.hpp"

#include "admin/query.hpp"

#include <array>
#include <charconv>
#include <set>
#include <span>

namespace idem::admin {
namespace {

constexpr std::string_view form_of_expected =
    "expect: must be SEQ:HASH, as the log and an export have them";

/// A whole number from `min` to `max`.
std::optional<std::uint64_t> number_of(std::string_view text, std::uint64_t min,
                                       std::uint64_t max) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const bool is_good = parsed.ec == std::errc{} && parsed.ptr == end;
  if (!is_good || number < min || number > max) return std::nullopt;
  return number;
}

}  // namespace

std::expected<AuditQuery, std::string> parse_audit_query(std::string_view query, bool filters) {
  static constexpr std::array<std::string_view, 5> known{"after", "limit", "who", "what", "ref"};
  const auto pairs = parse_query(query, std::span(known).first(filters ? 5 : 2));
  if (!pairs) return std::unexpected(pairs.error());
  AuditQuery out;
  std::set<std::string> seen;
  for (const auto& [name, value] : *pairs) {
    if (!seen.insert(name).second) return std::unexpected(name + ": appears twice");
    if (value.empty()) return std::unexpected(name + ": is empty; leave it out instead");
    if (name == "who") out.who = value;
    if (name == "what") out.what = value;
    if (name == "ref") out.ref = value;
    if (name == "after") {
      const auto number = number_of(value, 0, (std::uint64_t{1} << 62) - 1);
      if (!number) return std::unexpected("after: must be the \"seq\" of a line");
      out.after = *number;
    }
    if (name == "limit") {
      const auto number = number_of(value, 1, limits::list_page_max);
      if (!number) return std::unexpected("limit: must be a whole number from 1 to 1000");
      out.limit = static_cast<std::size_t>(*number);
    }
  }
  return out;
}

std::expected<std::optional<ExpectedLine>, std::string> parse_verify_query(std::string_view query) {
  static constexpr std::array<std::string_view, 1> known{"expect"};
  const auto pairs = parse_query(query, known);
  if (!pairs) return std::unexpected(pairs.error());
  if (pairs->empty()) return std::nullopt;
  if (pairs->size() > 1) return std::unexpected("expect: appears twice");
  auto line = parse_expected_line(pairs->front().second);
  if (!line) return std::unexpected(std::string(form_of_expected));
  return line;
}

}  // namespace idem::admin
