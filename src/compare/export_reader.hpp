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
/// What a provider exports, read front to back in bounded memory. What cannot be read is told with
/// its place, and reading goes on behind it.
namespace idem::compare {

/// Where something in an export is wrong.
struct BadLine {
  std::uint64_t line = 0;
  std::uint64_t column = 0;  ///< In bytes from 1; 0: the whole line.
  std::string what{};
  bool is_end = false;  ///< Nothing behind it can be read.
};

/// One line, or one item of a list.
struct ExportLine {
  std::uint64_t line = 0;  ///< Its first, from 1; a list's items are counted.
  std::string raw{};       ///< As it stands there, without the end of the line.
  /// Of the fields that were asked for, in their order; none: absent, null or no single value. What
  /// a CSV file leaves empty is absent.
  std::vector<std::optional<std::string>> values{};
};

/// An export, line by line. A last line that nothing ends is told, and then told to be cut.
class ExportReader {
 public:
  virtual ~ExportReader() = default;

  /// The next line. False: there is none. After an error without `is_end` it goes on behind it.
  virtual std::expected<bool, BadLine> next(ExportLine& into) = 0;
  /// The line that was read last, as a JSON object.
  virtual std::string json() const = 0;
};

/// Fills `into` with the bytes that come next, and says how many; 0: there are no more. The error
/// is a sentence.
using ReadBytes = std::function<std::expected<std::size_t, std::string>(std::span<char> into)>;

/// CSV as RFC 4180 has it, in UTF-8, with or without a byte order mark: quotes only around a whole
/// field, a quote inside of one doubled, lines ended by CRLF or LF, as many fields in each as the
/// first line has names. Empty lines are passed over. `fields` are names of columns. Behind a line
/// that cannot be read it goes on at the next end of a line behind the error, or behind the quote
/// that nothing closes.
std::expected<std::unique_ptr<ExportReader>, BadLine> read_csv(
    ReadBytes bytes, const std::vector<std::string>& fields);

/// A JSON object a line, with or without a byte order mark before all. `fields` are JSON Pointers,
/// or names of members.
std::expected<std::unique_ptr<ExportReader>, BadLine> read_json_lines(
    ReadBytes bytes, const std::vector<std::string>& fields);

/// Pages of a list, each a JSON document.
struct ListPages {
  /// The next page; none: there are no more. The error is a sentence, and ends it.
  std::function<std::expected<std::optional<std::string>, std::string>()> next_page;
  JsonPointer items{};  ///< Where in a page its array of objects lies.
};
/// The items of all pages. `fields` as with read_json_lines().
std::expected<std::unique_ptr<ExportReader>, BadLine> read_list(
    ListPages pages, const std::vector<std::string>& fields);

/// A field's name as a pointer: `name` is `/name`.
std::expected<JsonPointer, std::string> pointer_of(const std::string& field);

}  // namespace idem::compare
