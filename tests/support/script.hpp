#pragma once

#include <string>

namespace idem::test {

/// The output of a shell command, without the ends of its last lines; nothing where it fails.
std::string output_of(const std::string& command);

}  // namespace idem::test
