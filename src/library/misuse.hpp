#pragma once

#include <idem/log.hpp>

#include <string>
#include <string_view>

/// Messages for the service's author: wrong uses of the library, and exceptions of the service's
/// code.
namespace idem::library {

/// Prints what to do instead to stderr and aborts: no request could be served.
[[noreturn]] void misused(const std::string& sentence) noexcept;

/// `log`; if it is null, one that writes warnings and errors to stderr, a line each.
LogSink log_or_stderr(LogSink log);

/// "WHAT threw: TEXT" in a catch block, "WHAT threw" elsewhere.
std::string thrown_by(std::string_view what);
/// The same for work in a transaction, with the transaction's failure before it, which the
/// exception need not name; empty: there was none.
std::string thrown_by(std::string_view what, const std::string& failure);

}  // namespace idem::library
