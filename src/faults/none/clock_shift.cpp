#include "core/record/clock_shift.hpp"

namespace idem {

ClockShift clock_shift() noexcept { return {}; }

}  // namespace idem
