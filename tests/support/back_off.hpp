#pragma once

#include <chrono>
#include <thread>

namespace idem::test {

/// Between two looks at what a test waits for: leaves the processors to that, and to the tests
/// beside this one. Nothing may depend on its length.
inline void back_off() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace idem::test
