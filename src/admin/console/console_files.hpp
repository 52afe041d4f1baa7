#pragma once

#include <span>
#include <string_view>

namespace idem::admin {

/// One file of the console, as it lies in the program.
struct ConsoleFile {
  std::string_view path;  ///< Of the request: "/" or "/assets/NAME".
  std::string_view media_type;
  std::string_view gzip;  ///< Its content, compressed (RFC 1952).
};

/// All of them; none: the program was built without the console (cmake/console.cmake).
std::span<const ConsoleFile> console_files() noexcept;

}  // namespace idem::admin
