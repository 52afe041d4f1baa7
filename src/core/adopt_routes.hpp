#pragma once

#include "core/store_steps.hpp"

namespace idem {

/// AdoptRoutes, as one step. It looks at every record unless the table is the recorded one.
AdoptRoutes::Reply adopt(const StepContext& context, AdoptRoutes& verb);

}  // namespace idem
