#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

/// What a durable write costs by the file that it goes to: `sync_cost FILE [BYTES] [WRITES]`
/// (10,000 bytes, 4,000 writes). One behind the other, as a log of commits makes them, each with
/// its sync.

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t page = 4096;
constexpr off_t file_bytes = 64L << 20;

struct Way {
  const char* name;
  bool zeros;   ///< The file's blocks were written once before.
  bool cached;  ///< And the kernel holds them.
  bool direct;  ///< Whole pages past the kernel's cache.
};
constexpr Way ways[] = {{"new blocks", false, false, false},
                        {"written before, in the kernel's cache", true, true, false},
                        {"written before, not in its cache", true, false, false},
                        {"written before, whole pages past its cache", true, false, true}};

[[noreturn]] void fail(const char* doing) {
  std::perror(doing);
  std::exit(1);
}

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

void prepare(const char* path, const Way& way) {
  ::unlink(path);
  const int file = ::open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0) fail("open");
  const std::string zeros(1 << 20, '\0');
  for (off_t at = 0; way.zeros && at < file_bytes; at += static_cast<off_t>(zeros.size())) {
    if (::pwrite(file, zeros.data(), zeros.size(), at) < 0) fail("write");
  }
  if (!way.zeros && ::posix_fallocate(file, 0, file_bytes) != 0) fail("posix_fallocate");
  if (::fsync(file) != 0) fail("fsync");
  if (!way.cached) (void)::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

void measure(const char* path, const Way& way, std::size_t bytes, int writes) {
  prepare(path, way);
  const int file = ::open(path, O_RDWR | (way.direct ? O_DIRECT : 0));
  if (file < 0) fail("open");
  if (way.direct) bytes = (bytes + page - 1) / page * page;
  auto* const from = static_cast<char*>(::operator new(bytes, std::align_val_t{page}));
  std::fill(from, from + bytes, 'x');
  std::vector<double> took;
  const double cpu = cpu_seconds();
  off_t at = 0;
  for (int i = 0; i < writes; ++i) {
    if (at + static_cast<off_t>(bytes) > file_bytes) at = 0;
    const auto start = Clock::now();
    const iovec part{from, bytes};
    if (::pwritev2(file, &part, 1, at, RWF_DSYNC) != static_cast<ssize_t>(bytes)) fail("pwritev2");
    took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    at += static_cast<off_t>(bytes);
  }
  const double used = (cpu_seconds() - cpu) / writes * 1e6;
  std::ranges::sort(took);
  fmt::print("{}: median {:.0f} us, p99 {:.0f} us, {:.1f} us of CPU\n", way.name,
             took[took.size() / 2], took[took.size() * 99 / 100], used);
  ::operator delete(from, std::align_val_t{page});
  ::close(file);
  ::unlink(path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: sync_cost FILE [BYTES] [WRITES]\n");
    return 2;
  }
  const std::size_t bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000;
  const int writes = argc > 3 ? std::atoi(argv[3]) : 4'000;
  for (int run = 1; run <= 2; ++run) {
    for (const Way& way : ways) measure(argv[1], way, bytes, writes);
  }
}
