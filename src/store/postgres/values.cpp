#include "store/postgres/values.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/utf8.hpp"
#include "core/record/stored_fence.hpp"

#include <idem/assert.hpp>

#include <bit>
#include <cstring>

namespace idem::postgres {
namespace {

/// 2000-01-01, where the server's moments begin, in milliseconds since 1970.
constexpr std::int64_t server_epoch = 946'684'800'000;
constexpr std::string_view escape = "\\x";

template <class Number>
Number big_endian(Number value) noexcept {
  return std::endian::native == std::endian::big ? value : std::byteswap(value);
}

template <class Number>
std::int64_t number_at(std::string_view cell) noexcept {
  Number value = 0;
  std::memcpy(&value, cell.data(), sizeof value);
  return big_endian(value);
}

std::int64_t micros_of(StoreTime moment) noexcept {
  return (moment.time_since_epoch().count() - server_epoch) * 1'000;
}

/// The type of an array's elements.
Type element_of(Type type) {
  switch (type) {
    case Type::bool_array:
      return Type::boolean;
    case Type::bytea_array:
      return Type::bytea;
    case Type::int8_array:
      return Type::int8;
    case Type::text_array:
      return Type::text;
    case Type::uuid_array:
      return Type::uuid;
    case Type::boolean:
    case Type::bytea:
    case Type::int8:
    case Type::int4:
    case Type::text:
    case Type::timestamptz:
    case Type::uuid:
      break;
  }
  IDEM_ASSERT(!"not an array");
  return type;
}

// An array begins with the number of dimensions, a flag for nulls, the element's type, the length
// and the lower bound.
constexpr std::size_t length_at = 12;

std::string_view view_of(const Uuid& value) {
  return {reinterpret_cast<const char*>(value.data()), value.size()};
}

bool is_plain(std::string_view bytes) {
  return !bytes.starts_with(escape) && bytes.find('\0') == bytes.npos && is_utf8(bytes);
}

}  // namespace

void Params::begin(Type type) { places_.push_back({type, bytes_.size(), 0, false}); }

void Params::end() { places_.back().size = bytes_.size() - places_.back().begin; }

void Params::put(std::string_view bytes) { bytes_.append(bytes); }

template <class Number>
void Params::put_number(Number value) {
  value = big_endian(value);
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Params& Params::null(Type type) {
  begin(type);
  places_.back().is_null = true;
  return *this;
}

Params& Params::boolean(bool value) {
  begin(Type::boolean);
  bytes_.push_back(value ? 1 : 0);
  end();
  return *this;
}

Params& Params::number(std::int64_t value) {
  begin(Type::int8);
  put_number(value);
  end();
  return *this;
}

Params& Params::small(std::int32_t value) {
  begin(Type::int4);
  put_number(value);
  end();
  return *this;
}

Params& Params::text(std::string_view value) {
  begin(Type::text);
  put(value);
  end();
  return *this;
}

Params& Params::bytes(std::string_view value) {
  begin(Type::bytea);
  put(value);
  end();
  return *this;
}

Params& Params::uuid(const Uuid& value) {
  begin(Type::uuid);
  put(view_of(value));
  end();
  return *this;
}

Params& Params::fence(const std::optional<Fence>& value) {
  return number(static_cast<std::int64_t>(stored_fence(value)));
}

Params& Params::moment(StoreTime value) {
  begin(Type::timestamptz);
  put_number(micros_of(value));
  end();
  return *this;
}

Params& Params::optional_number(const std::optional<Millis>& value) {
  return value ? number(value->count()) : null(Type::int8);
}

Params& Params::optional_moment(const std::optional<StoreTime>& value) {
  return value ? moment(*value) : null(Type::timestamptz);
}

Params& Params::array(Type type) {
  begin(type);
  put_number(std::int32_t{1});
  put_number(std::int32_t{1});
  put_number(static_cast<std::uint32_t>(element_of(type)));
  put_number(std::int32_t{0});
  put_number(std::int32_t{1});
  end();
  return *this;
}

void Params::begin_element(std::size_t bytes) {
  char* const length = bytes_.data() + places_.back().begin + length_at;
  std::int32_t count = 0;
  std::memcpy(&count, length, sizeof count);
  count = big_endian(static_cast<std::int32_t>(big_endian(count) + 1));
  std::memcpy(length, &count, sizeof count);
  put_number(static_cast<std::int32_t>(bytes));
}

void Params::append_boolean(bool value) {
  begin_element(1);
  bytes_.push_back(value ? 1 : 0);
  end();
}

void Params::append_number(std::int64_t value) {
  begin_element(sizeof value);
  put_number(value);
  end();
}

void Params::append_text(std::string_view value) { append_bytes(value); }

void Params::append_bytes(std::string_view value) {
  begin_element(value.size());
  put(value);
  end();
}

void Params::append_uuid(const Uuid& value) { append_bytes(view_of(value)); }

void Params::append_null() {
  begin_element(static_cast<std::size_t>(-1));
  end();
}

Params::Raw Params::raw() const {
  Raw raw;
  for (const Place& place : places_) {
    raw.types.push_back(static_cast<std::uint32_t>(place.type));
    raw.values.push_back(place.is_null ? nullptr : bytes_.data() + place.begin);
    raw.lengths.push_back(static_cast<int>(place.size));
    raw.formats.push_back(1);
  }
  return raw;
}

std::string as_text(std::string_view bytes) {
  return is_plain(bytes) ? std::string(bytes) : std::string(escape) + hex_of(bytes);
}

std::string from_text(std::string_view text) {
  if (!text.starts_with(escape)) return std::string(text);
  std::string bytes;
  for (std::size_t i = escape.size(); i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(hex_value(text[i]) << 4 | hex_value(text[i + 1]));
  }
  return bytes;
}

bool to_boolean(std::string_view cell) noexcept { return !cell.empty() && cell.front() != 0; }

std::int64_t to_number(std::string_view cell) noexcept {
  switch (cell.size()) {
    case sizeof(std::int16_t):
      return number_at<std::int16_t>(cell);
    case sizeof(std::int32_t):
      return number_at<std::int32_t>(cell);
    case sizeof(std::int64_t):
      return number_at<std::int64_t>(cell);
  }
  return 0;
}

Uuid to_uuid(std::string_view cell) noexcept {
  Uuid value{};
  if (cell.size() == value.size()) std::memcpy(value.data(), cell.data(), value.size());
  return value;
}

std::vector<std::string_view> to_elements(std::string_view cell) {
  constexpr std::size_t header = 20;
  std::vector<std::string_view> elements;
  if (cell.size() < header || to_number(cell.substr(0, 4)) != 1) return elements;
  std::string_view rest = cell.substr(header);
  while (rest.size() >= 4) {
    const auto length = to_number(rest.substr(0, 4));
    rest.remove_prefix(4);
    if (length < 0) continue;
    if (static_cast<std::size_t>(length) > rest.size()) break;
    elements.push_back(rest.substr(0, static_cast<std::size_t>(length)));
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  return elements;
}

StoreTime to_moment(std::string_view cell) noexcept {
  return StoreTime(Millis(to_number(cell) / 1'000 + server_epoch));
}

}  // namespace idem::postgres
