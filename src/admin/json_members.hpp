#pragma once

#include "json/writer.hpp"

#include <idem/record.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

/// Members that several pages of the admin API have.
namespace idem::admin {

/// RFC 3339, in UTC; null without a moment.
void write_moment(json::Writer& out, std::string_view name, const std::optional<StoreTime>& moment);

/// Null where the text is empty.
void write_text_or_null(json::Writer& out, std::string_view name, std::string_view text);

inline void write_value(json::Writer& out, bool value) { out.boolean(value); }
inline void write_value(json::Writer& out, double value) { out.real(value); }
template <std::integral Number>
  requires(!std::same_as<Number, bool>)
void write_value(json::Writer& out, Number value) {
  out.number(value);
}
template <class T>
void write_value(json::Writer& out, const std::optional<T>& value) {
  if (!value) return out.null();
  write_value(out, *value);
}
/// Null where there is none.
template <class T>
void write_optional(json::Writer& out, std::string_view name, const std::optional<T>& value) {
  out.name(name);
  write_value(out, value);
}

/// Whole seconds, none below 0.
std::int64_t seconds_of(Millis time);

}  // namespace idem::admin
