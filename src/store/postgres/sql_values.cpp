#include "store/postgres/sql_values.hpp"

#include <idem/limits.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

namespace idem::postgres {
namespace {

// pg_type.dat
enum TypeNumber : std::uint32_t {
  bool_type = 16,
  bytea_type = 17,
  int8_type = 20,
  int2_type = 21,
  int4_type = 23,
  float4_type = 700,
  float8_type = 701,
  numeric_type = 1700,
};

std::string big_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

template <class Number>
SqlValue to_number_of(std::string_view cell) {
  Number number{};
  std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return number;
}

/// A whole number of 64 bits is an integer, as on other databases. Any other stays an exact text.
SqlValue to_whole_number(std::string_view cell) {
  std::int64_t number = 0;
  const char* const end = cell.data() + cell.size();
  const auto parsed = std::from_chars(cell.data(), end, number);
  if (parsed.ec == std::errc{} && parsed.ptr == end) return number;
  return std::string(cell);
}

SqlBytes to_bytes(std::string_view cell) {
  const std::string text(cell);
  std::size_t length = 0;
  unsigned char* const bytes =
      PQunescapeBytea(reinterpret_cast<const unsigned char*>(text.c_str()), &length);
  SqlBytes made;
  if (bytes != nullptr) made.bytes.assign(reinterpret_cast<const char*>(bytes), length);
  PQfreemem(bytes);
  return made;
}

SqlValue to_value(const Rows& rows, int row, int column) {
  if (rows.is_null(row, column)) return std::monostate();
  const std::string_view cell = rows.cell(row, column);
  switch (rows.type(column)) {
    case int2_type:
    case int4_type:
    case int8_type:
      return to_number_of<std::int64_t>(cell);
    case float4_type:
    case float8_type:
      return to_number_of<double>(cell);
    case bytea_type:
      return to_bytes(cell);
    case bool_type:
      return std::int64_t{cell == "t" ? 1 : 0};
    case numeric_type:
      return to_whole_number(cell);
  }
  return std::string(cell);
}

/// `sql` from its first keyword on, without blanks, comments and empty statements.
std::string_view without_preface(std::string_view sql) {
  for (;;) {
    const auto from = sql.find_first_not_of(" \t\r\n\f\v;");
    if (from == sql.npos) return {};
    sql.remove_prefix(from);
    if (sql.starts_with("--")) {
      sql.remove_prefix(std::min(sql.find_first_of("\r\n"), sql.size()));
    } else if (sql.starts_with("/*")) {
      std::size_t depth = 0;
      do {
        const bool opens = sql.starts_with("/*");
        const bool closes = sql.starts_with("*/");
        if (opens) ++depth;
        if (closes) --depth;
        sql.remove_prefix(opens || closes ? 2 : 1);
      } while (depth > 0 && !sql.empty());
    } else {
      return sql;
    }
  }
}

bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Removes the first keyword of `sql` and returns it in capitals; empty: another character comes
/// first.
std::string first_word(std::string_view& sql) {
  sql = without_preface(sql);
  std::string word;
  while (!sql.empty() && is_letter(sql.front())) {
    const char c = sql.front();
    word += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    sql.remove_prefix(1);
  }
  return word;
}

constexpr std::array<std::string_view, 8> commands{"ABORT",   "BEGIN",    "COMMIT",    "END",
                                                   "RELEASE", "ROLLBACK", "SAVEPOINT", "START"};
constexpr std::array<std::string_view, 7> of_rows{"DELETE", "INSERT", "MERGE", "SELECT",
                                                  "UPDATE", "VALUES", "WITH"};
constexpr std::array<std::string_view, 11> of_others{"CLOSE", "DECLARE", "FETCH",   "LOCK",
                                                     "MOVE",  "NOTIFY",  "RESET",   "SET",
                                                     "SHOW",  "TABLE",   "TRUNCATE"};

}  // namespace

std::expected<SqlParams, std::string> SqlParams::of(std::span<const SqlValue> values) {
  if (values.size() > limits::statement_params_max) {
    return std::unexpected(std::to_string(values.size()) + " parameters; a statement has " +
                           std::to_string(limits::statement_params_max) + " at most");
  }
  SqlParams params;
  params.places_.reserve(values.size());
  for (const SqlValue& value : values) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      params.places_.push_back(
          {int8_type, false, true, big_endian(std::bit_cast<std::uint64_t>(*number))});
    } else if (const auto* real = std::get_if<double>(&value)) {
      params.places_.push_back(
          {float8_type, false, true, big_endian(std::bit_cast<std::uint64_t>(*real))});
    } else if (const auto* boolean = std::get_if<bool>(&value)) {
      params.places_.push_back({bool_type, false, true, std::string(1, *boolean ? '\1' : '\0')});
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      // The text would end there, and the database would store another one.
      if (text->find('\0') != text->npos) {
        return std::unexpected(
            "parameter " + std::to_string(params.places_.size() + 1) +
            " is a text with a NUL, which a database cannot hold: pass SqlBytes");
      }
      params.places_.push_back({0, false, false, *text});
    } else if (const auto* bytes = std::get_if<SqlBytes>(&value)) {
      params.places_.push_back({bytea_type, false, true, bytes->bytes});
    } else {
      params.places_.push_back({0, true, false, {}});
    }
  }
  return params;
}

Params::Raw SqlParams::raw() const {
  Params::Raw raw;
  for (const Place& place : places_) {
    raw.types.push_back(place.type);
    raw.values.push_back(place.is_null ? nullptr : place.bytes.c_str());
    raw.lengths.push_back(static_cast<int>(place.bytes.size()));
    raw.formats.push_back(place.is_binary ? 1 : 0);
  }
  return raw;
}

SqlRows to_sql_rows(const Rows& rows) {
  SqlRows made;
  made.reserve(static_cast<std::size_t>(rows.size()));
  for (int row = 0; row < rows.size(); ++row) {
    SqlRow& cells = made.emplace_back();
    for (int column = 0; column < rows.columns(); ++column) {
      cells.push_back(to_value(rows, row, column));
    }
  }
  return made;
}

std::string_view transaction_command(std::string_view sql) {
  const std::string word = first_word(sql);
  const auto found = std::ranges::find(commands, word);
  if (found != commands.end()) return *found;
  // Any other PREPARE prepares a statement.
  if (word == "PREPARE" && first_word(sql) == "TRANSACTION") return "PREPARE TRANSACTION";
  return {};
}

bool may_ask_for_records(std::string_view sql) noexcept {
  const auto is_same = [](char a, char b) { return (a | 0x20) == b; };
  return !std::ranges::search(sql, std::string_view("idem"), is_same).empty();
}

Does what_does(std::string_view sql) {
  const std::string word = first_word(sql);
  if (std::ranges::find(of_rows, word) != of_rows.end()) return Does::rows;
  return std::ranges::find(of_others, word) != of_others.end() ? Does::aside : Does::more;
}

}  // namespace idem::postgres
