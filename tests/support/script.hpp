#pragma once

#include <string>

namespace idem::test {

/// The output of a shell command, without the ends of its last lines; nothing where it fails.
std::string output_of(const std::string& command);

/// Up to the first space or line end of a file that a script wrote; nothing without such a file.
std::string first_field_of(const std::string& path);

}  // namespace idem::test
