#pragma once

#include "core/json/scalars.hpp"

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// @file
/// Reads a provider's export from front to back in bounded memory. A line that cannot be read gives
/// an error with its place, and reading continues behind it.
namespace idem::compare {

/// An error in an export, with its place.
struct BadLine {
  std::uint64_t line = 0;
  std::uint64_t column = 0;  ///< In bytes from 1; 0: the whole line.
  std::string what{};
  bool is_end = false;  ///< Reading cannot continue.
};

/// One line, or one item of a list.
struct ExportLine {
  std::uint64_t line = 0;  ///< The first line of it, from 1; in a list, the number of the item.
  std::string raw{};       ///< As in the export, without the end of the line.
  /// The requested fields in their order; none: absent, null or not a single value. An empty field
  /// of a CSV file is absent.
  std::vector<std::optional<std::string>> values{};
};

/// An export, line by line. A last line without an end is returned, followed by an error that it
/// may be cut off.
class ExportReader {
 public:
  virtual ~ExportReader() = default;

  /// Reads the next line. False: there is none. After an error without `is_end`, reading continues.
  virtual std::expected<bool, BadLine> next(ExportLine& into) = 0;
  /// The last line that was read, as a JSON object.
  virtual std::string json() const = 0;
};

/// Fills `into` with the next bytes and returns how many; 0: the end. The error is a sentence.
using ReadBytes = std::function<std::expected<std::size_t, std::string>(std::span<char> into)>;

/// CSV of RFC 4180 in UTF-8, with or without a byte order mark: quotes only around a whole field, a
/// quote inside doubled, lines end with CRLF or LF, each line has as many fields as the first one
/// has names. Empty lines are skipped. `fields` are names of columns. After an error, reading
/// continues behind the next end of a line after it, or after the quote that nothing closes.
std::expected<std::unique_ptr<ExportReader>, BadLine> read_csv(
    ReadBytes bytes, const std::vector<std::string>& fields);

/// One JSON object per line, with or without a byte order mark at the beginning. `fields` are JSON
/// Pointers, or names of members.
std::expected<std::unique_ptr<ExportReader>, BadLine> read_json_lines(
    ReadBytes bytes, const std::vector<std::string>& fields);

/// Pages of a list, each a JSON document.
struct ListPages {
  /// The next page; none: the end. The error is a sentence, and ends the list.
  std::function<std::expected<std::optional<std::string>, std::string>()> next_page;
  JsonPointer items{};  ///< The place of the array of objects in a page.
};
/// Reads the items of all pages. `fields` as with read_json_lines().
std::expected<std::unique_ptr<ExportReader>, BadLine> read_list(
    ListPages pages, const std::vector<std::string>& fields);

/// A JSON Pointer, or a member's name as one: `name` gives `/name`.
std::expected<JsonPointer, std::string> pointer_of(const std::string& field);

}  // namespace idem::compare
