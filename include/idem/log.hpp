#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Where the program's parts report what people should know. Never given a raw key, a body or a
/// credential: a record is named by its handle.
namespace idem::inline v0_1 {

/// Who should look: nobody, somebody some day, somebody now.
enum class LogLevel { info, warning, error };

/// Of one event: a text or a number, which a log in JSON writes as one.
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

/// One event: a short fixed name ("listening", "lease_expired") and its fields. Safe from any
/// thread.
using LogSink = std::function<void(LogLevel level, std::string_view event,
                                   std::initializer_list<LogField> fields)>;

}  // namespace idem::inline v0_1
