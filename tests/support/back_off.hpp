#pragma once

#include <chrono>
#include <thread>

namespace idem::test {

/// Call this between two looks at a condition that a test waits for: it leaves the processors to
/// the other tests and to the process that the test waits for. A loop of N tries waits N times 20
/// ms.
inline void back_off() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace idem::test
