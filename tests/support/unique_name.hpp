#pragma once

#include <string>
#include <string_view>

namespace idem::test {

/// A name that no other test of a run has: letters, digits and underscores. The number of a process
/// alone would not do, for a long run uses each more than once.
std::string unique_name(std::string_view begin);

}  // namespace idem::test
