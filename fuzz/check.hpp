#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

namespace idem::fuzz {

/// The seed that is being run, for the message; empty under libFuzzer, which keeps the bytes
/// itself.
inline std::string_view seed_name;

/// Ends the process when a property does not hold: to libFuzzer that is a finding, to ctest a
/// failure.
inline void check(bool holds, std::string_view property,
                  std::source_location where = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "finding: not true that %.*s (%s:%u, seed %.*s)\n",
               static_cast<int>(property.size()), property.data(), where.file_name(), where.line(),
               static_cast<int>(seed_name.size()), seed_name.data());
  std::abort();
}

}  // namespace idem::fuzz
