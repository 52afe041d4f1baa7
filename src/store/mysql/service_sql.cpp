#include "store/mysql/service_sql.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/hex.hpp"
#include "store/named_values.hpp"

#include <fmt/format.h>
#include <mysql.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace idem::mysql {
namespace {

bool is_blank(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }
/// Bytes beyond ASCII are letters. A dollar within a name is a part of it.
bool is_in_name(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c & 0x80) != 0;
}

/// A statement in pieces: `$n`; what is none; and the end of the statement.
class Scan {
 public:
  enum class Piece : std::uint8_t { text, number, separator };
  explicit Scan(std::string_view sql) : sql_(sql) {}

  bool is_at_end() const noexcept { return at_ >= sql_.size(); }
  /// The number of the `$n` that was read last.
  std::size_t number() const noexcept { return number_; }
  std::string_view read() const noexcept { return sql_.substr(from_, at_ - from_); }
  /// The piece holds nothing that the server would execute.
  bool is_silent() const noexcept { return is_silent_; }

  Piece next() {
    from_ = at_;
    is_silent_ = false;
    const char c = sql_[at_];
    if (is_in_name(c)) return name();
    if (c == '\'' || c == '"' || c == '`') return quoted(c);
    if (c == '$') return dollar();
    if (c == ';') {
      ++at_;
      return Piece::separator;
    }
    if (rest().starts_with("/*")) return comment();
    const bool is_dashed =
        rest().starts_with("--") && (at_ + 2 == sql_.size() || is_blank(sql_[at_ + 2]));
    if (c == '#' || is_dashed) {
      at_ = std::min(sql_.find('\n', at_), sql_.size());
      is_silent_ = true;
      return Piece::text;
    }
    is_silent_ = is_blank(c);
    ++at_;
    return Piece::text;
  }

 private:
  std::string_view rest() const { return sql_.substr(at_); }

  Piece name() {
    while (at_ < sql_.size() && (is_in_name(sql_[at_]) || sql_[at_] == '$')) ++at_;
    return Piece::text;
  }

  // A doubled quote begins another text, which continues this one. The session's sql_mode lets
  // backslashes escape in texts.
  Piece quoted(char quote) {
    for (++at_; at_ < sql_.size(); ++at_) {
      if (quote != '`' && sql_[at_] == '\\') {
        ++at_;
      } else if (sql_[at_] == quote) {
        ++at_;
        return Piece::text;
      }
    }
    at_ = sql_.size();  // A backslash at the end moves beyond it.
    return Piece::text;
  }

  // The server executes what is in an executable comment, so only its marks are skipped.
  Piece comment() {
    const bool is_executable = rest().starts_with("/*!") || rest().starts_with("/*M!");
    if (is_executable) {
      at_ += 2;
      return Piece::text;
    }
    const auto end = sql_.find("*/", at_ + 2);
    at_ = end == sql_.npos ? sql_.size() : end + 2;
    is_silent_ = true;
    return Piece::text;
  }

  Piece dollar() {
    const char* const end = sql_.data() + sql_.size();
    const auto parsed = std::from_chars(sql_.data() + at_ + 1, end, number_);
    const bool is_number = parsed.ptr != sql_.data() + at_ + 1;
    if (!is_number) {
      ++at_;
      return Piece::text;
    }
    at_ = static_cast<std::size_t>(parsed.ptr - sql_.data());
    if (parsed.ec != std::errc{}) number_ = SIZE_MAX;
    return Piece::number;
  }

  std::string_view sql_;
  std::size_t from_ = 0;
  std::size_t at_ = 0;
  std::size_t number_ = 0;
  bool is_silent_ = false;
};

struct Literal {
  using Made = std::expected<std::string, std::string>;
  Made operator()(std::monostate) const { return "NULL"; }
  Made operator()(std::int64_t value) const {
    return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
  }
  // With an exponent it is a double; without, an exact decimal.
  Made operator()(double value) const {
    if (!std::isfinite(value)) return std::unexpected("a number that is not finite");
    return fmt::format("({:.17e})", value);
  }
  Made operator()(const std::string& value) const {
    return fmt::format("_utf8mb4 x'{}'", hex_of(value));
  }
  Made operator()(const SqlBytes& value) const {
    return fmt::format("_binary x'{}'", hex_of(value.bytes));
  }
  Made operator()(bool value) const { return value ? "TRUE" : "FALSE"; }
};

/// A whole number of 64 bits is an integer, as on other databases. Any other stays an exact text.
SqlValue to_whole_number(std::string_view cell) {
  std::int64_t number = 0;
  const char* const end = cell.data() + cell.size();
  const auto parsed = std::from_chars(cell.data(), end, number);
  if (parsed.ec == std::errc{} && parsed.ptr == end) return number;
  return std::string(cell);
}

/// Big-endian, as the server sends it.
SqlValue to_bits(std::string_view cell) {
  std::uint64_t number = 0;
  for (const char c : cell) number = number << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(number);
}

SqlValue to_value(const MYSQL_FIELD& field, std::string_view cell) {
  constexpr unsigned binary_charset = 63;
  switch (field.type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_DECIMAL:
    case MYSQL_TYPE_NEWDECIMAL:
      return to_whole_number(cell);
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE: {
      double number = 0;
      std::from_chars(cell.data(), cell.data() + cell.size(), number);
      return number;
    }
    case MYSQL_TYPE_BIT:
      return to_bits(cell);
    case MYSQL_TYPE_TINY_BLOB:
    case MYSQL_TYPE_MEDIUM_BLOB:
    case MYSQL_TYPE_LONG_BLOB:
    case MYSQL_TYPE_BLOB:
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_VAR_STRING:
    case MYSQL_TYPE_STRING:
    case MYSQL_TYPE_GEOMETRY:
      if (field.charsetnr == binary_charset) return SqlBytes{std::string(cell)};
      return std::string(cell);
    default:
      return std::string(cell);
  }
}

/// The first words of a statement, in capitals.
struct FirstWords {
  std::string first;
  std::string second;
};

FirstWords first_words(std::string_view sql) {
  FirstWords words;
  Scan scan(sql);
  while (!scan.is_at_end()) {
    const auto piece = scan.next();
    const std::string_view read = scan.read();
    const bool is_mark = read == "/*" || read == "!" || read == "M" || is_digit(read.front());
    if (scan.is_silent() || piece == Scan::Piece::separator || is_mark) continue;
    if (!is_in_name(read.front())) break;
    std::string word(read);
    std::ranges::transform(word, word.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    (words.first.empty() ? words.first : words.second) = std::move(word);
    if (!words.second.empty()) break;
  }
  return words;
}

/// Of transactions, and those that commit implicitly.
constexpr std::array<std::string_view, 30> committing{
    "ALTER",   "ANALYZE", "BEGIN",    "CACHE",     "CHANGE", "CHECK",    "COMMIT",    "CREATE",
    "DROP",    "FLUSH",   "GRANT",    "INSTALL",   "LOAD",   "LOCK",     "OPTIMIZE",  "PURGE",
    "RELEASE", "RENAME",  "REPAIR",   "RESET",     "REVOKE", "ROLLBACK", "SAVEPOINT", "SHUTDOWN",
    "START",   "STOP",    "TRUNCATE", "UNINSTALL", "UNLOCK", "XA"};

}  // namespace

std::expected<std::string, std::string> literal_of(const SqlValue& value) {
  return std::visit(Literal(), static_cast<const SqlValue::variant&>(value));
}

std::expected<std::string, std::string> with_values(std::string_view sql,
                                                    std::span<const SqlValue> values) {
  std::set<std::size_t> named;
  for (Scan scan(sql); !scan.is_at_end();) {
    if (scan.next() == Scan::Piece::number) named.insert(scan.number());
  }
  if (auto wrong = parameter_mismatch(named, values.size())) {
    return std::unexpected(std::move(*wrong));
  }
  std::vector<std::string> literals;
  for (const SqlValue& value : values) {
    auto made = literal_of(value);
    if (!made) {
      return std::unexpected(fmt::format("parameter {} is {}", literals.size() + 1, made.error()));
    }
    literals.push_back(std::move(*made));
  }
  std::string text;
  for (Scan scan(sql); !scan.is_at_end();) {
    if (scan.next() == Scan::Piece::number) {
      text += literals[scan.number() - 1];
    } else {
      text += scan.read();
    }
  }
  return text;
}

SqlRows to_sql_rows(st_mysql_res* result) {
  SqlRows made;
  const unsigned columns = mysql_num_fields(result);
  const MYSQL_FIELD* const fields = mysql_fetch_fields(result);
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const unsigned long* const lengths = mysql_fetch_lengths(result);
    SqlRow& cells = made.emplace_back();
    for (unsigned i = 0; i < columns; ++i) {
      if (row[i] == nullptr) {
        cells.emplace_back();
      } else {
        cells.push_back(to_value(fields[i], {row[i], lengths[i]}));
      }
    }
  }
  return made;
}

std::string transaction_command(std::string_view sql) {
  auto [first, second] = first_words(sql);
  if (std::ranges::find(committing, first) == committing.end()) return {};
  const bool is_of_session = second == "TEMPORARY" && (first == "CREATE" || first == "DROP");
  if (is_of_session || (first == "LOAD" && second == "DATA")) return {};
  return std::move(first);
}

std::string transaction_end(std::string_view sql) {
  static constexpr std::array<std::string_view, 9> ending{
      "BEGIN", "COMMIT", "LOCK", "RELEASE", "ROLLBACK", "SAVEPOINT", "START", "UNLOCK", "XA"};
  auto first = first_words(sql).first;
  if (std::ranges::find(ending, first) == ending.end()) return {};
  return first;
}

bool is_plain(std::string_view sql) {
  static constexpr std::array<std::string_view, 7> plain{"SELECT",  "INSERT", "UPDATE", "DELETE",
                                                         "REPLACE", "WITH",   "VALUES"};
  return std::ranges::find(plain, first_words(sql).first) != plain.end();
}

bool has_several_statements(std::string_view sql) {
  bool is_over = false;
  for (Scan scan(sql); !scan.is_at_end();) {
    const auto piece = scan.next();
    if (piece == Scan::Piece::separator) {
      is_over = true;
    } else if (is_over && !scan.is_silent()) {
      return true;
    }
  }
  return false;
}

}  // namespace idem::mysql
