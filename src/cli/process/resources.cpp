#include "cli/process/resources.hpp"

#include <malloc.h>
#include <sys/resource.h>

namespace idem::cli {

// glibc raises the mmap threshold with each large block that is freed, up to 32 MiB, and then
// keeps such blocks in every thread's heap: the canonical form of one large JSON body would stay
// for good. With a fixed threshold they go back to the kernel at once. The padding sets in what
// steps a heap grows and shrinks: each step is a system call for which all threads wait, and with
// small steps the store's thread made one for every tenth request.
void give_large_blocks_back() {
  constexpr int block_bytes = 1024 * 1024;
  ::mallopt(M_MMAP_THRESHOLD, block_bytes);
  ::mallopt(M_TRIM_THRESHOLD, 2 * block_bytes);
  ::mallopt(M_TOP_PAD, block_bytes / 4);
}

// Raises the limit of descriptors to the hard limit: each connection needs one, and its upstream
// another. Shells set 1,024; running out would harm honest clients first.
void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace idem::cli
