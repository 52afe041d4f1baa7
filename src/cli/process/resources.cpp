#include "cli/process/resources.hpp"

#include <sys/resource.h>

namespace idem::cli {

// Raises the limit of descriptors to the hard limit: each connection needs one, and its upstream
// another. Shells set 1,024; running out would harm honest clients first.
void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace idem::cli
