// Loaded before the C library into a process under test (LD_PRELOAD): writes down, in their order,
// all calls that change what is below the folder IDEM_DISK_ROOT, and what the process says on
// descriptor 3, into the file IDEM_DISK_TRACE. A kill -9 leaves the trace whole up to that moment.
// The disk keeps nothing that is synced in files and folders whose paths, with a $ behind them,
// contain IDEM_DISK_FORGETS. The step with the number IDEM_DISK_KILLS_AT is the last one: a kill -9
// ends the process.
#include "disk_trace/steps.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace {

using idem::test::TraceStep;
using Kind = TraceStep::Kind;

constexpr int said_on = 3;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

/// Recursive, because the C++ library's calls within may come back here.
std::recursive_mutex& lock() {
  static auto* const all = new std::recursive_mutex;
  return *all;
}

class Trace {
 public:
  Trace() {
    const char* const root = std::getenv("IDEM_DISK_ROOT");
    const char* const path = std::getenv("IDEM_DISK_TRACE");
    if (root == nullptr || path == nullptr) return;
    root_ = root;
    if (const char* const forgets = std::getenv("IDEM_DISK_FORGETS")) forgets_ = forgets;
    if (const char* const last = std::getenv("IDEM_DISK_KILLS_AT")) left_ = std::atol(last);
    out_ = static_cast<int>(
        ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  }

  bool is_on() const { return out_ >= 0; }

  /// Empty: it is not below the folder.
  std::string below(const char* path) const {
    if (!is_on() || path == nullptr) return {};
    std::string whole = std::filesystem::path(path).is_absolute()
                            ? path
                            : (std::filesystem::current_path() / path).string();
    whole = std::filesystem::path(whole).lexically_normal().string();
    if (whole.ends_with('/')) whole.pop_back();
    if (whole == root_) return ".";
    return whole.starts_with(root_ + "/") ? whole.substr(root_.size() + 1) : std::string();
  }

  void step(Kind kind, std::uint32_t node, std::uint64_t at, std::string_view bytes) {
    const TraceStep head{kind, node, at, bytes.size()};
    const iovec parts[] = {{const_cast<TraceStep*>(&head), sizeof head},
                           {const_cast<char*>(bytes.data()), bytes.size()}};
    ::syscall(SYS_writev, out_, parts, 2);
    if (--left_ == 0) ::kill(::getpid(), SIGKILL);
  }

  std::uint32_t node_at(const std::string& path, bool is_new, Kind made = Kind::made) {
    const auto found = nodes_.find(path);
    if (found != nodes_.end()) return found->second;
    const std::uint32_t node = ++last_node_;
    nodes_[path] = node;
    if (!forgets_.empty() && (path + '$').find(forgets_) != std::string::npos)
      forgotten_.insert(node);
    step(is_new ? made : Kind::seen, node, 0, path);
    return node;
  }

  void moved(const std::string& from, const std::string& to) {
    const auto node = nodes_.extract(from);
    nodes_.erase(to);
    nodes_[to] = node.mapped();
    // What lies below a folder moves with it.
    std::map<std::string, std::uint32_t> below;
    for (auto at = nodes_.lower_bound(from + "/");
         at != nodes_.end() && at->first.starts_with(from + "/");) {
      below[to + at->first.substr(from.size())] = at->second;
      at = nodes_.erase(at);
    }
    nodes_.merge(below);
  }
  bool forgets(std::uint32_t node) const { return forgotten_.contains(node); }
  void forget(const std::string& path) { nodes_.erase(path); }

  void keep(int descriptor, std::uint32_t node) { open_[descriptor] = node; }
  void drop(int descriptor) { open_.erase(descriptor); }
  /// 0: none of the folder's.
  std::uint32_t node_of(int descriptor) const {
    const auto found = open_.find(descriptor);
    return found == open_.end() ? 0 : found->second;
  }

 private:
  std::string root_;
  std::string forgets_;
  std::set<std::uint32_t> forgotten_;
  int out_ = -1;
  long left_ = 0;  ///< Steps; 0 or less: no bound.
  std::uint32_t last_node_ = 0;
  std::map<std::string, std::uint32_t> nodes_;
  std::map<int, std::uint32_t> open_;
};

Trace& trace() {
  static auto* const all = new Trace;
  return *all;
}

int opened(const char* path, int how, mode_t mode) {
  const std::lock_guard guard(lock());
  const std::string below = trace().below(path);
  struct stat facts{};
  const bool was_there = below.empty() || ::syscall(SYS_newfstatat, AT_FDCWD, path, &facts, 0) == 0;
  const int descriptor = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, how, mode));
  const int error = errno;
  if (descriptor >= 0 && !below.empty()) {
    const std::uint32_t node = trace().node_at(below, !was_there);
    trace().keep(descriptor, node);
    if ((how & O_TRUNC) != 0 && was_there) trace().step(Kind::resized, node, 0, {});
  }
  errno = error;
  return descriptor;
}

template <class Call>
ssize_t write_noted(int descriptor, std::uint64_t at, std::string_view bytes, bool durably,
                    Call call) {
  std::uint32_t node = 0;
  if (trace().is_on()) {
    const std::lock_guard guard(lock());
    if (descriptor == said_on) trace().step(Kind::said, 0, 0, bytes);
    node = trace().node_of(descriptor);
    // Until it is done, each part of it may be on the disk or not.
    if (node != 0 && durably) trace().step(Kind::written, node, at, bytes);
  }
  const ssize_t n = call();
  const int error = errno;
  if (node != 0 && n > 0) {
    const std::lock_guard guard(lock());
    const bool is_kept = durably && !trace().forgets(node);
    if (durably && !is_kept) return n;
    trace().step(is_kept ? Kind::written_durably : Kind::written, node, at,
                 bytes.substr(0, static_cast<std::size_t>(n)));
  }
  errno = error;
  return n;
}

int sync_noted(int descriptor, long call) {
  static std::uint64_t last = 0;
  std::uint32_t node = 0;
  std::uint64_t number = 0;
  if (trace().is_on()) {
    const std::lock_guard guard(lock());
    node = trace().node_of(descriptor);
    if (trace().forgets(node)) node = 0;
    number = ++last;
    if (node != 0) trace().step(Kind::sync_begun, node, number, {});
  }
  const int result = static_cast<int>(::syscall(call, descriptor));
  const int error = errno;
  if (node != 0 && result == 0) {
    const std::lock_guard guard(lock());
    trace().step(Kind::sync_done, node, number, {});
  }
  errno = error;
  return result;
}

void note_unknown(const char* name, const std::string& about) {
  if (!about.empty()) trace().step(Kind::unknown, 0, 0, name + (" " + about));
}

int rename_noted(const char* from, const char* to, unsigned how) {
  const std::lock_guard guard(lock());
  const std::string old = trace().below(from);
  const std::string name = trace().below(to);
  if (old.empty() != name.empty()) note_unknown("rename", old + name);
  if (!old.empty()) trace().node_at(old, false);
  const bool exchanges = (how & RENAME_EXCHANGE) != 0;
  if (exchanges && !name.empty()) note_unknown("exchange", name);
  const int result = static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, how));
  const int error = errno;
  if (result == 0 && !old.empty() && !exchanges) {
    trace().moved(old, name);
    trace().step(Kind::renamed, 0, 0, old + '\0' + name);
  }
  errno = error;
  return result;
}

int unlink_noted(const char* path, int how) {
  const std::lock_guard guard(lock());
  const std::string below = trace().below(path);
  if (!below.empty()) {
    struct stat facts{};
    if (::syscall(SYS_newfstatat, AT_FDCWD, path, &facts, AT_SYMLINK_NOFOLLOW) == 0) {
      trace().node_at(below, false);
    }
  }
  const int result = static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, how));
  const int error = errno;
  if (result == 0 && !below.empty()) {
    trace().forget(below);
    trace().step(Kind::unlinked, 0, 0, below);
  }
  errno = error;
  return result;
}

mode_t mode_in(int how, va_list arguments) {
  return (how & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

std::string path_at(int folder, const char* path) {
  if (folder == AT_FDCWD || *path == '/') return path;
  char at[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(folder);
  const auto size = ::syscall(SYS_readlinkat, AT_FDCWD, link.c_str(), at, sizeof at);
  return std::string(at, size < 0 ? 0 : static_cast<std::size_t>(size)) + "/" + path;
}

std::string_view text(const void* bytes, std::size_t size) {
  return {static_cast<const char*>(bytes), size};
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int how, ...) {
  va_list arguments;
  va_start(arguments, how);
  const mode_t mode = mode_in(how, arguments);
  va_end(arguments);
  return opened(path, how, mode);
}
int open64(const char* path, int how, ...) {
  va_list arguments;
  va_start(arguments, how);
  const mode_t mode = mode_in(how, arguments);
  va_end(arguments);
  return opened(path, how | O_LARGEFILE, mode);
}
int openat(int folder, const char* path, int how, ...) {
  va_list arguments;
  va_start(arguments, how);
  const mode_t mode = mode_in(how, arguments);
  va_end(arguments);
  return opened(path_at(folder, path).c_str(), how, mode);
}
int openat64(int folder, const char* path, int how, ...) {
  va_list arguments;
  va_start(arguments, how);
  const mode_t mode = mode_in(how, arguments);
  va_end(arguments);
  return opened(path_at(folder, path).c_str(), how | O_LARGEFILE, mode);
}
int creat(const char* path, mode_t mode) {
  return opened(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

int fcntl(int descriptor, int what, ...) {
  va_list arguments;
  va_start(arguments, what);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  const auto call = [&] { return ::syscall(SYS_fcntl, descriptor, what, argument); };
  if (what != F_DUPFD && what != F_DUPFD_CLOEXEC) return static_cast<int>(call());
  const std::lock_guard guard(lock());
  const int copy = static_cast<int>(call());
  const std::uint32_t node = trace().node_of(descriptor);
  if (copy >= 0 && node != 0) trace().keep(copy, node);
  return copy;
}
int fcntl64(int descriptor, int what, ...) {
  va_list arguments;
  va_start(arguments, what);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  return fcntl(descriptor, what, argument);
}
int dup(int descriptor) { return fcntl(descriptor, F_DUPFD, 0L); }

int close(int descriptor) {
  const std::lock_guard guard(lock());
  trace().drop(descriptor);
  return static_cast<int>(::syscall(SYS_close, descriptor));
}

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  std::uint64_t at = 0;
  if (trace().is_on() && descriptor != said_on) {
    struct stat facts{};
    const long how = ::syscall(SYS_fcntl, descriptor, F_GETFL, 0);
    if ((how & O_APPEND) != 0 && ::syscall(SYS_fstat, descriptor, &facts) == 0) {
      at = static_cast<std::uint64_t>(facts.st_size);
    } else {
      const off_t now = static_cast<off_t>(::syscall(SYS_lseek, descriptor, 0, SEEK_CUR));
      at = now < 0 ? 0 : static_cast<std::uint64_t>(now);
    }
  }
  return write_noted(descriptor, at, text(bytes, size), false,
                     [&] { return ::syscall(SYS_write, descriptor, bytes, size); });
}
ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, off_t at) {
  return write_noted(descriptor, static_cast<std::uint64_t>(at), text(bytes, size), false,
                     [&] { return ::syscall(SYS_pwrite64, descriptor, bytes, size, at); });
}
ssize_t pwrite64(int descriptor, const void* bytes, std::size_t size, off64_t at) {
  return pwrite(descriptor, bytes, size, at);
}
ssize_t pwritev2(int descriptor, const iovec* parts, int count, off_t at, int how) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text(parts[i].iov_base, parts[i].iov_len);
  static const auto real = next<ssize_t (*)(int, const iovec*, int, off_t, int)>("pwritev2");
  return write_noted(descriptor, static_cast<std::uint64_t>(at), all, (how & RWF_DSYNC) != 0,
                     [&] { return real(descriptor, parts, count, at, how); });
}
ssize_t pwritev64v2(int descriptor, const iovec* parts, int count, off64_t at, int how) {
  return pwritev2(descriptor, parts, count, at, how);
}

int fsync(int descriptor) { return sync_noted(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return sync_noted(descriptor, SYS_fdatasync); }

int ftruncate(int descriptor, off_t size) {
  const std::lock_guard guard(lock());
  const int result = static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
  const std::uint32_t node = trace().node_of(descriptor);
  if (result == 0 && node != 0) {
    trace().step(Kind::resized, node, static_cast<std::uint64_t>(size), {});
  }
  return result;
}
int ftruncate64(int descriptor, off64_t size) { return ftruncate(descriptor, size); }

int fallocate(int descriptor, int how, off_t at, off_t size) {
  const std::lock_guard guard(lock());
  struct stat before{};
  struct stat after{};
  ::syscall(SYS_fstat, descriptor, &before);
  const int result = static_cast<int>(::syscall(SYS_fallocate, descriptor, how, at, size));
  const int error = errno;
  const std::uint32_t node = trace().node_of(descriptor);
  if (result == 0 && node != 0) {
    ::syscall(SYS_fstat, descriptor, &after);
    if (after.st_size != before.st_size) {
      trace().step(Kind::resized, node, static_cast<std::uint64_t>(after.st_size), {});
    }
    if ((how & ~FALLOC_FL_KEEP_SIZE) != 0) trace().step(Kind::unknown, node, 0, "fallocate");
  }
  errno = error;
  return result;
}
int fallocate64(int descriptor, int how, off64_t at, off64_t size) {
  return fallocate(descriptor, how, at, size);
}

int posix_fallocate(int descriptor, off_t at, off_t size) {
  return fallocate(descriptor, 0, at, size) == 0 ? 0 : errno;
}

int rename(const char* from, const char* to) { return rename_noted(from, to, 0); }
int renameat(int old, const char* from, int folder, const char* to) {
  return rename_noted(path_at(old, from).c_str(), path_at(folder, to).c_str(), 0);
}
int renameat2(int old, const char* from, int folder, const char* to, unsigned how) {
  return rename_noted(path_at(old, from).c_str(), path_at(folder, to).c_str(), how);
}
int unlink(const char* path) { return unlink_noted(path, 0); }
int unlinkat(int folder, const char* path, int how) {
  return unlink_noted(path_at(folder, path).c_str(), how);
}
int rmdir(const char* path) { return unlink_noted(path, AT_REMOVEDIR); }
int remove(const char* path) {
  const int result = unlink_noted(path, 0);
  return result != 0 && errno == EISDIR ? unlink_noted(path, AT_REMOVEDIR) : result;
}
int link(const char* from, const char* to) {
  {
    const std::lock_guard guard(lock());
    note_unknown("link", trace().below(to));
  }
  return static_cast<int>(::syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int mkdir(const char* path, mode_t mode) {
  const std::lock_guard guard(lock());
  const int result = static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
  const int error = errno;
  const std::string below = trace().below(path);
  if (result == 0 && !below.empty()) trace().node_at(below, true, Kind::made_folder);
  errno = error;
  return result;
}
}
#pragma GCC visibility pop
