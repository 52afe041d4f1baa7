#pragma once

#include <idem/log.hpp>

#include <string>
#include <string_view>

/// What is told to who wrote the service: how it uses the library wrongly, and what went wrong in
/// the code that it gave us.
namespace idem::library {

/// Says what to do instead, on stderr, and ends the process: no request could be served so.
[[noreturn]] void misused(const std::string& sentence) noexcept;

/// `log`, or where it is null one that writes warnings and errors to stderr, a line each.
LogSink log_or_stderr(LogSink log);

/// "WHAT threw: TEXT", within a catch block; outside of one without the text.
std::string thrown_by(std::string_view what);

}  // namespace idem::library
