// Loaded before the C library into a process under test (LD_PRELOAD): while there is a file
// IDEM_DISK_HANGS, calls that concern files below IDEM_HANGING_FOLDER do not return, as on a disk
// that no longer answers. With IDEM_DISK_DELAY_MS each takes so long, as on a slow one.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/statvfs.h>
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

void wait_for_the_disk() {
  const char* hangs = std::getenv("IDEM_DISK_HANGS");
  if (const char* delay = std::getenv("IDEM_DISK_DELAY_MS")) {
    const timespec slow{0, std::atol(delay) * 1'000'000};
    ::nanosleep(&slow, nullptr);
  }
  const timespec pause{0, 1'000'000};
  while (hangs != nullptr && ::access(hangs, F_OK) == 0) ::nanosleep(&pause, nullptr);
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (is_below(file)) wait_for_the_disk();
  return real(file, bytes, size);
}

int fstatvfs(int file, struct statvfs* disk) {
  static const auto real = next<int (*)(int, struct statvfs*)>("fstatvfs");
  if (is_below(file)) wait_for_the_disk();
  return real(file, disk);
}

int open(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const unsigned mode = va_arg(more, unsigned);
  va_end(more);
  if (is_below(path)) wait_for_the_disk();
  return real(path, flags, mode);
}

int close(int file) {
  static const auto real = next<int (*)(int)>("close");
  if (is_below(file)) wait_for_the_disk();
  return real(file);
}

}  // extern "C"
