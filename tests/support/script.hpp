#pragma once

#include <string>

namespace idem::test {

/// What a command of the shell prints, without the ends of its last lines; nothing where it fails.
std::string output_of(const std::string& command);

}  // namespace idem::test
