#pragma once

#include <idem/record.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Values on their way to the server and back, in its binary form: no quoting, no time zones, no
/// floating point. Big-endian, as the protocol has it (PostgreSQL documentation, "Message
/// Formats").
namespace idem::postgres {

/// The types that are sent, by their fixed numbers (pg_type.dat).
enum class Type : std::uint32_t {
  boolean = 16,
  bytea = 17,
  int8 = 20,
  int4 = 23,
  text = 25,
  timestamptz = 1184,
  uuid = 2950,
  bool_array = 1000,
  bytea_array = 1001,
  int8_array = 1016,
  text_array = 1009,
  uuid_array = 2951,
};

using Uuid = std::array<std::uint8_t, 16>;

/// The parameters of one statement, in their order. Texts must be UTF-8 without NUL: see as_text().
class Params {
 public:
  Params& null(Type type);
  Params& boolean(bool value);
  Params& number(std::int64_t value);
  Params& small(std::int32_t value);
  Params& text(std::string_view value);
  Params& bytes(std::string_view value);
  Params& uuid(const Uuid& value);
  Params& fence(const std::optional<Fence>& value);
  Params& moment(StoreTime value);
  Params& optional_number(const std::optional<Millis>& value);
  Params& optional_moment(const std::optional<StoreTime>& value);

  /// An array that grows by append_*() until the next parameter; one at a time.
  Params& array(Type type);
  void append_boolean(bool value);
  void append_number(std::int64_t value);
  void append_text(std::string_view value);
  void append_bytes(std::string_view value);
  void append_uuid(const Uuid& value);
  void append_null();

  int size() const noexcept { return static_cast<int>(places_.size()); }
  /// For libpq; valid until the next change.
  struct Raw {
    std::vector<std::uint32_t> types;
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats;
  };
  Raw raw() const;

 private:
  struct Place {
    Type type;
    std::size_t begin;
    std::size_t size;
    bool is_null;
  };
  void begin(Type type);
  void end();
  void put(std::string_view bytes);
  template <class Number>
  void put_number(Number value);
  void begin_element(std::size_t bytes);

  std::string bytes_;
  std::vector<Place> places_;
};

/// Text that the server accepts. Bytes that are not UTF-8 or contain a NUL, and texts that look
/// like the result, become `\x` and hex digits, so that no two texts become one.
std::string as_text(std::string_view bytes);
std::string from_text(std::string_view text);

// ---- cells of a result; the caller knows the type ----

bool to_boolean(std::string_view cell) noexcept;
/// Of 2, 4 or 8 bytes.
std::int64_t to_number(std::string_view cell) noexcept;
Uuid to_uuid(std::string_view cell) noexcept;
StoreTime to_moment(std::string_view cell) noexcept;
/// The elements of an array of one dimension without the nulls; valid as long as the cell. Empty if
/// it is null or not such an array.
std::vector<std::string_view> to_elements(std::string_view cell);

}  // namespace idem::postgres
