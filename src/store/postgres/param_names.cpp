#include "store/postgres/param_names.hpp"

#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <charconv>

namespace idem::postgres {
namespace {

/// Begins a name, or the tag between two dollars. Bytes beyond ASCII are letters.
bool begins_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool is_in_name(char c) noexcept { return begins_name(c) || is_digit(c); }

class Scan {
 public:
  explicit Scan(std::string_view sql) : sql_(sql) {}

  std::set<std::size_t> run() {
    while (at_ < sql_.size()) step();
    return std::move(found_);
  }

 private:
  std::string_view rest() const { return sql_.substr(at_); }

  void step() {
    const char c = sql_[at_];
    if (begins_name(c)) return name();
    if (c == '\'') return quoted('\'', false);
    if (c == '"') return quoted('"', false);
    if (c == '$') return dollar();
    if (rest().starts_with("--")) {
      at_ = std::min(sql_.find_first_of("\r\n", at_), sql_.size());
    } else if (rest().starts_with("/*")) {
      comment();
    } else {
      ++at_;
    }
  }

  /// A name may contain dollars. An e before a quote marks a text with backslashes.
  void name() {
    const std::size_t from = at_;
    while (at_ < sql_.size() && (is_in_name(sql_[at_]) || sql_[at_] == '$')) ++at_;
    const bool is_mark = at_ == from + 1 && (sql_[from] | 0x20) == 'e';
    if (!is_mark || !rest().starts_with('\'')) return;
    do {
      quoted('\'', true);
    } while (rest().starts_with('\''));
  }

  void quoted(char quote, bool has_backslashes) {
    for (++at_; at_ < sql_.size(); ++at_) {
      if (has_backslashes && sql_[at_] == '\\') {
        ++at_;
      } else if (sql_[at_] == quote) {
        ++at_;  // A doubled quote begins another text, which continues this one.
        return;
      }
    }
    at_ = sql_.size();  // A backslash at the end moves beyond it.
  }

  void comment() {
    std::size_t depth = 0;
    do {
      const bool opens = rest().starts_with("/*");
      const bool closes = rest().starts_with("*/");
      if (opens) ++depth;
      if (closes) --depth;
      at_ += opens || closes ? 2 : 1;
    } while (depth > 0 && at_ < sql_.size());
  }

  void dollar() {
    std::size_t end = at_ + 1;
    while (end < sql_.size() && is_in_name(sql_[end])) ++end;
    if (end > at_ + 1 && is_digit(sql_[at_ + 1])) {
      std::size_t number = 0;
      const auto parsed = std::from_chars(sql_.data() + at_ + 1, sql_.data() + end, number);
      if (parsed.ec == std::errc{}) found_.insert(number);
      at_ = static_cast<std::size_t>(parsed.ptr - sql_.data());
      return;
    }
    if (end == sql_.size() || sql_[end] != '$') {
      at_ = end;
      return;
    }
    const std::string_view tag = sql_.substr(at_, end + 1 - at_);
    const auto closing = sql_.find(tag, end + 1);
    at_ = closing == sql_.npos ? sql_.size() : closing + tag.size();
  }

  std::string_view sql_;
  std::size_t at_ = 0;
  std::set<std::size_t> found_{};
};

}  // namespace

std::set<std::size_t> params_named(std::string_view sql) { return Scan(sql).run(); }

}  // namespace idem::postgres
