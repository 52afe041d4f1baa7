// A provider's exports, as CSV and as JSON lines. Pieces change neither lines nor complaints; it
// goes forward and ends; a line is in the input as it is reported; a CSV line written anew is read
// as the same one; a member that a pointer finds is the one that another parser finds.
#include "compare/export_reader.hpp"
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "support/json.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace idem::fuzz {
namespace {

using compare::ExportLine;
using compare::ExportReader;

struct Line {
  std::uint64_t line = 0;
  std::uint64_t column = 0;
  std::string what;  ///< Or of a good line what it is.
  std::vector<std::optional<std::string>> values;
  bool operator==(const Line&) const = default;
};

compare::ReadBytes reading(std::string_view input, auto next_piece) {
  return
      [input, next_piece](std::span<char> into) mutable -> std::expected<std::size_t, std::string> {
        const std::size_t count = std::min(next_piece(input.size()), into.size());
        std::ranges::copy(input.substr(0, count), into.begin());
        input.remove_prefix(count);
        return count;
      };
}

void check_json_line(const std::string& json, const ExportLine& line) {
  check(check_json(json).has_value(), "a line is JSON, once it was read");
  const auto other = test::parse_json(json);
  if (!other) return;  // It has its own limits.
  const test::Json& member = (*other)["a"];
  if (member.kind == test::Json::Kind::string) {
    check(line.values.at(0) == member.string || member.string.empty(), "a string is that string");
  }
  const bool is_none = member.kind == test::Json::Kind::null ||
                       member.kind == test::Json::Kind::object ||
                       member.kind == test::Json::Kind::array;
  if (is_none) check(!line.values.at(0), "what is no single value is absent");
}

/// A CSV file of one line, all quoted.
std::string written(const std::string& json) {
  std::string names;
  std::string fields;
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\",";
  };
  const auto parsed = test::parse_json(json);
  check(parsed.has_value(), "a CSV line is JSON");
  for (const auto& [name, value] : parsed->members) {
    names += quoted(name);
    fields += quoted(value.string);
  }
  names.back() = '\n';
  fields.back() = '\n';
  return names + fields;
}

std::vector<Line> all_of(ExportReader& reader, std::string_view input, bool is_csv) {
  std::vector<Line> lines;
  ExportLine line;
  std::uint64_t last = 0;
  const auto breaks = static_cast<std::size_t>(std::ranges::count(input, '\n'));
  for (;;) {
    check(lines.size() <= breaks + 1, "each step takes a line");
    const auto more = reader.next(line);
    if (!more) {
      check(more.error().line >= last, "it goes forward");
      last = more.error().line;
      lines.push_back({last, more.error().column, more.error().what, {}});
      if (more.error().is_end) return lines;
      continue;
    }
    if (!*more) return lines;
    check(line.line > last || lines.empty() || line.line == last, "it goes forward");
    check(input.contains(line.raw), "a line is in the input");
    last = line.line;
    const std::string json = reader.json();
    if (is_csv) {
      const std::string again = written(json);
      auto copy = compare::read_csv(reading(again, [](std::size_t left) { return left; }), {"a"});
      ExportLine second;
      check(copy && (*copy)->next(second).value_or(false), "what is written anew can be read");
      check(second.values == line.values && (*copy)->json() == json, "and is the same");
    } else {
      check_json_line(json, line);
    }
    lines.push_back({line.line, 0, line.raw, line.values});
  }
}

void read(std::string_view input, bool is_csv) {
  const auto lines = [&](auto next_piece) {
    auto bytes = reading(input, next_piece);
    auto reader = is_csv ? compare::read_csv(std::move(bytes), {"a"})
                         : compare::read_json_lines(std::move(bytes), {"a"});
    if (!reader) {
      return std::vector<Line>{
          {reader.error().line, reader.error().column, reader.error().what, {}}};
    }
    return all_of(**reader, input, is_csv);
  };
  Pieces pieces(input);
  const auto whole = lines([](std::size_t left) { return left; });
  const auto parts = lines([&](std::size_t left) { return pieces.piece(left); });
  check(whole == parts, "pieces change nothing");
}

}  // namespace

void export_lines(std::string_view input) {
  read(input, true);
  read("a,b\n" + std::string(input), true);
  read(input, false);
}

}  // namespace idem::fuzz
