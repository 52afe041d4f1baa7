#pragma once

#include <chrono>
#include <thread>

namespace idem::test {

/// Between two looks at what a test waits for: leaves the processors to that, and to the tests
/// beside this one. Loops that count their tries last so many times 20 ms.
inline void back_off() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace idem::test
