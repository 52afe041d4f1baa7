#include "store/mysql/sql_text.hpp"

#include <charconv>
#include <cstring>

namespace idem::mysql {
namespace {

template <class Number>
Number parsed(std::string_view text) noexcept {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

SqlText& SqlText::moment(const std::optional<StoreTime>& value) {
  return value ? moment(*value) : sql("NULL");
}

// Within quotes only the quote and the backslash have a meaning, as the session's sql_mode is fixed
// and its character set is `binary`. A zero byte is escaped for tools that show the text.
SqlText& SqlText::bytes(std::string_view value) {
  to_.reserve(to_.size() + value.size() + 2);
  to_ += '\'';
  constexpr std::string_view special("'\\\0", 3);
  while (!value.empty()) {
    const auto end = std::min(value.find_first_of(special), value.size());
    to_ += value.substr(0, end);
    value.remove_prefix(end);
    if (value.empty()) break;
    to_ += '\\';
    to_ += value.front() == '\0' ? '0' : value.front();
    value.remove_prefix(1);
  }
  to_ += '\'';
  return *this;
}

SqlText& SqlText::ids(std::span<const RecordId> ids) {
  const char* before = "";
  for (const RecordId& id : ids) {
    sql(before).hex(id.bytes);
    before = ",";
  }
  return *this;
}

std::int64_t to_number(std::string_view text) noexcept { return parsed<std::int64_t>(text); }
std::uint64_t to_unsigned(std::string_view text) noexcept { return parsed<std::uint64_t>(text); }

std::optional<RecordId> to_id(std::string_view bytes) noexcept {
  RecordId id;
  if (bytes.size() != id.bytes.size()) return std::nullopt;
  std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  return id;
}

}  // namespace idem::mysql
