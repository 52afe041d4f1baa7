#pragma once

#include <idem/record.hpp>

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Values in the text of a statement. A session's literals are bytes (connection.cpp).
namespace idem::mysql {

/// Appends to `to`. No value gets into a text in another way.
class SqlText {
 public:
  explicit SqlText(std::string& to) noexcept : to_(to) {}

  SqlText& sql(std::string_view text) {
    to_ += text;
    return *this;
  }
  template <std::integral T>
  SqlText& number(T value) {
    to_ += std::to_string(value);
    return *this;
  }
  SqlText& moment(StoreTime value) { return number(value.time_since_epoch().count()); }
  SqlText& moment(const std::optional<StoreTime>& value);
  SqlText& boolean(bool value) { return sql(value ? "1" : "0"); }
  SqlText& bytes(std::string_view value);
  template <std::size_t N>
  SqlText& hex(const std::array<std::uint8_t, N>& value) {
    return sql("x'").sql(to_hex(value)).sql("'");
  }
  /// x'..',x'..'
  SqlText& ids(std::span<const RecordId> ids);

 private:
  std::string& to_;
};

/// The numbers that a server writes as text; 0 for anything else.
std::int64_t to_number(std::string_view text) noexcept;
std::uint64_t to_unsigned(std::string_view text) noexcept;

inline StoreTime to_moment(std::string_view text) noexcept {
  return StoreTime(Millis(to_number(text)));
}

/// None: it is no id.
std::optional<RecordId> to_id(std::string_view bytes) noexcept;

inline std::string_view bytes_of(const RecordId& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

}  // namespace idem::mysql
