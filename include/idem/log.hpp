#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Log events for people. They name a record by its handle, and never contain a raw key, a body or
/// a credential.
namespace idem::inline v0_1 {

/// How urgent an event is: for information, to look at some day, to look at now.
enum class LogLevel { info, warning, error };

/// A field of an event: a text, or a number, which a JSON log writes as a number.
struct LogField {
  LogField(std::string_view field, std::string text) : name(field), value(std::move(text)) {}
  /// A whole number.
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  LogField(std::string_view field, Number number)
      : name(field), value(std::to_string(number)), is_number(true) {}

  std::string_view name;
  std::string value;       ///< A number as JSON spells it.
  bool is_number = false;  ///< Otherwise a text, also where it has digits only.
};

/// Receives one event: a short fixed name ("listening", "lease_expired") and its fields. Must be
/// safe from any thread.
using LogSink = std::function<void(LogLevel level, std::string_view event,
                                   std::initializer_list<LogField> fields)>;

}  // namespace idem::inline v0_1
