#pragma once

#include <idem/record.hpp>

namespace idem {

/// What a test puts between this machine's clocks and a store's.
struct ClockShift {
  Millis wall{};
  Millis uptime{};
  bool by_test = false;  ///< There is such a file, whatever it says.
};

/// Nothing in a shipped binary, which links src/faults/none. In a test binary (src/faults/armed) it
/// is what the file that IDEM_CLOCK_FILE names says at this moment: two numbers of milliseconds, 64
/// bits each as this machine has them, which the test changes by writing them in place. Safe from
/// any thread.
ClockShift clock_shift() noexcept;

}  // namespace idem
