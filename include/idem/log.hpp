#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

/// @file
/// Where the program's parts report what people should know. Never given a raw key, a body or a
/// credential: a record is named by its handle.
namespace idem::inline v0_1 {

/// Who should look: nobody, somebody some day, somebody now.
enum class LogLevel { info, warning, error };

/// Of one event.
struct LogField {
  std::string_view name;
  std::string value;
};

/// One event: a short fixed name ("listening", "lease_expired") and its fields. Safe from any
/// thread.
using LogSink = std::function<void(LogLevel level, std::string_view event,
                                   std::initializer_list<LogField> fields)>;

}  // namespace idem::inline v0_1
