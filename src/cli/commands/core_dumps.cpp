#include "cli/commands/core_dumps.hpp"

#include <sys/prctl.h>

namespace idem::cli {

void forbid_core_dumps() noexcept { ::prctl(PR_SET_DUMPABLE, 0); }

void allow_core_dumps() noexcept { ::prctl(PR_SET_DUMPABLE, 1); }

}  // namespace idem::cli
