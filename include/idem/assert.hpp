#pragma once

#include <source_location>

/// @file
/// Broken invariants end the process.

namespace idem {

/// Prints the failed condition with its place to stderr and aborts. A broken invariant in a program
/// that guards money must stop it: the next start recovers from what is durable.
[[noreturn]] void assertion_failed(const char* condition, std::source_location where) noexcept;

}  // namespace idem

/// Checks an invariant of ours (a bug when false, never bad input); stays on in release builds.
#define IDEM_ASSERT(condition)        \
  ((condition) ? static_cast<void>(0) \
               : ::idem::assertion_failed(#condition, std::source_location::current()))
