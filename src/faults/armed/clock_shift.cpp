#include "core/record/clock_shift.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cstdlib>

namespace idem {
namespace {

using Numbers = std::array<std::int64_t, 2>;

/// Mapped once for the process's life, so that a write of the test has effect at once.
Numbers* map_file() {
  const char* path = std::getenv("IDEM_CLOCK_FILE");
  if (path == nullptr) return nullptr;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) std::abort();  // A clock that cannot be moved would make its test pass.
  void* mapped = ::mmap(nullptr, sizeof(Numbers), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped == MAP_FAILED) std::abort();
  return static_cast<Numbers*>(mapped);
}

Millis read(std::int64_t& number) {
  return Millis(std::atomic_ref(number).load(std::memory_order_relaxed));
}

}  // namespace

ClockShift clock_shift() noexcept {
  static Numbers* const numbers = map_file();
  if (numbers == nullptr) return {};
  return {.wall = read((*numbers)[0]), .uptime = read((*numbers)[1]), .by_test = true};
}

}  // namespace idem
