#pragma once

#include <idem/record.hpp>

namespace idem {

/// How far a test moves a store's clocks from this machine's.
struct ClockShift {
  Millis wall{};
  Millis uptime{};
  bool by_test = false;  ///< There is such a file, even if it moves nothing.
};

/// No shift in a shipped binary, which links src/faults/none. A test binary (src/faults/armed)
/// reads the file that IDEM_CLOCK_FILE names at each call: two numbers of milliseconds, 64 bits
/// each in this machine's byte order, which the test overwrites in place. Safe from any thread.
ClockShift clock_shift() noexcept;

}  // namespace idem
