#pragma once

#include <pthread.h>
#include <csignal>

namespace idem::cli {

/// Blocks SIGTERM, SIGINT, SIGHUP and SIGUSR2 and returns them as a set, for sigwait() on the main
/// thread. Call it before other threads start: they inherit the mask. Ignores SIGPIPE, and SIGXFSZ,
/// so that a file at the process's size limit counts as a full disk and does not end the process.
inline sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return set;
}

}  // namespace idem::cli
