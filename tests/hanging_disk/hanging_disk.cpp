// Loaded before the C library into a process under test (LD_PRELOAD): while there is a file
// IDEM_DISK_HANGS, calls that concern files below IDEM_HANGING_FOLDER do not return, as on a disk
// that no longer answers; if that file begins with "w", those that only read do return, as on a
// frozen file system (fsfreeze). With IDEM_DISK_DELAY_MS each call that a spilled body needs takes
// so long, as on a slow disk.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_below(std::string_view path) {
  const char* folder = std::getenv("IDEM_HANGING_FOLDER");
  return folder != nullptr && path.starts_with(folder);
}

bool is_below(int file) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  return size > 0 && is_below(std::string_view(path, static_cast<std::size_t>(size)));
}

enum class Call { reads, writes };

bool hangs(Call call) {
  const char* name = std::getenv("IDEM_DISK_HANGS");
  if (name == nullptr) return false;
  static const auto real_open = next<int (*)(const char*, int, ...)>("open");
  static const auto real_read = next<ssize_t (*)(int, void*, size_t)>("read");
  static const auto real_close = next<int (*)(int)>("close");
  const int file = real_open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char first = 0;
  const bool is_frozen = real_read(file, &first, 1) == 1 && first == 'w';
  real_close(file);
  return call == Call::writes || !is_frozen;
}

void wait_for_the_disk(Call call) {
  const timespec pause{0, 1'000'000};
  while (hangs(call)) ::nanosleep(&pause, nullptr);
}

void wait_as_for_a_slow_disk() {
  const char* const delay = std::getenv("IDEM_DISK_DELAY_MS");
  if (delay == nullptr) return;
  const timespec slow{0, std::atol(delay) * 1'000'000};
  ::nanosleep(&slow, nullptr);
}

template <class Place>
void wait_if_below(const Place& place, Call call) {
  if (is_below(place)) wait_for_the_disk(call);
}

template <class Place>
void wait_if_below_slow_too(const Place& place, Call call) {
  if (!is_below(place)) return;
  wait_as_for_a_slow_disk();
  wait_for_the_disk(call);
}

Call opening(int flags) { return (flags & (O_CREAT | O_TRUNC)) != 0 ? Call::writes : Call::reads; }

}  // namespace

extern "C" {

// NOLINTBEGIN(bugprone-macro-parentheses)
#define IDEM_ON_FILE(RESULT, NAME, CALL, PARAMETERS, ARGUMENTS) \
  RESULT NAME PARAMETERS {                                      \
    static const auto real = next<RESULT(*) PARAMETERS>(#NAME); \
    wait_if_below(place, Call::CALL);                           \
    return real ARGUMENTS;                                      \
  }
// NOLINTEND(bugprone-macro-parentheses)

using Bytes = const void*;
using Parts = const struct iovec*;
using Text = const char*;

IDEM_ON_FILE(ssize_t, pwrite, writes, (int place, Bytes b, size_t n, off_t at), (place, b, n, at))
IDEM_ON_FILE(ssize_t, pwrite64, writes, (int place, Bytes b, size_t n, off64_t at),
             (place, b, n, at))
IDEM_ON_FILE(ssize_t, writev, writes, (int place, Parts v, int n), (place, v, n))
IDEM_ON_FILE(ssize_t, pwritev2, writes, (int place, Parts v, int n, off_t at, int f),
             (place, v, n, at, f))
IDEM_ON_FILE(ssize_t, read, reads, (int place, void* b, size_t n), (place, b, n))
IDEM_ON_FILE(ssize_t, pread, reads, (int place, void* b, size_t n, off_t at), (place, b, n, at))
IDEM_ON_FILE(ssize_t, pread64, reads, (int place, void* b, size_t n, off64_t at), (place, b, n, at))
IDEM_ON_FILE(int, fsync, writes, (int place), (place))
IDEM_ON_FILE(int, fdatasync, writes, (int place), (place))
IDEM_ON_FILE(int, sync_file_range, writes, (int place, off64_t at, off64_t n, unsigned f),
             (place, at, n, f))
IDEM_ON_FILE(int, fallocate, writes, (int place, int mode, off_t at, off_t n), (place, mode, at, n))
IDEM_ON_FILE(int, ftruncate, writes, (int place, off_t n), (place, n))
IDEM_ON_FILE(int, ftruncate64, writes, (int place, off64_t n), (place, n))
IDEM_ON_FILE(int, fstat, reads, (int place, struct stat* s), (place, s))
IDEM_ON_FILE(int, fstat64, reads, (int place, struct stat64* s), (place, s))
IDEM_ON_FILE(int, stat, reads, (Text place, struct stat* s), (place, s))
IDEM_ON_FILE(int, stat64, reads, (Text place, struct stat64* s), (place, s))
IDEM_ON_FILE(int, lstat, reads, (Text place, struct stat* s), (place, s))
IDEM_ON_FILE(int, lstat64, reads, (Text place, struct stat64* s), (place, s))
IDEM_ON_FILE(int, access, reads, (Text place, int mode), (place, mode))
IDEM_ON_FILE(int, statvfs, reads, (Text place, struct statvfs* d), (place, d))
IDEM_ON_FILE(int, mkdir, writes, (Text place, mode_t mode), (place, mode))
IDEM_ON_FILE(int, unlink, writes, (Text place), (place))
IDEM_ON_FILE(int, rename, writes, (Text place, Text to), (place, to))
#undef IDEM_ON_FILE

ssize_t write(int file, const void* bytes, size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  wait_if_below_slow_too(file, Call::writes);
  return real(file, bytes, size);
}

int fstatvfs(int file, struct statvfs* disk) {
  static const auto real = next<int (*)(int, struct statvfs*)>("fstatvfs");
  wait_if_below_slow_too(file, Call::reads);
  return real(file, disk);
}

int open(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const unsigned mode = va_arg(more, unsigned);
  va_end(more);
  wait_if_below_slow_too(std::string_view(path), opening(flags));
  return real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open64");
  va_list more;
  va_start(more, flags);
  const unsigned mode = va_arg(more, unsigned);
  va_end(more);
  wait_if_below_slow_too(std::string_view(path), opening(flags));
  return real(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  static const auto real = next<int (*)(int, const char*, int, ...)>("openat");
  va_list more;
  va_start(more, flags);
  const unsigned mode = va_arg(more, unsigned);
  va_end(more);
  if (path[0] == '/') {
    wait_if_below(std::string_view(path), opening(flags));
  } else {
    wait_if_below(folder, opening(flags));
  }
  return real(folder, path, flags, mode);
}

int close(int file) {
  static const auto real = next<int (*)(int)>("close");
  wait_if_below_slow_too(file, Call::reads);
  return real(file);
}

}  // extern "C"
