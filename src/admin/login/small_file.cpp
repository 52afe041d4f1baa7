#include "admin/login/small_file.hpp"

#include <idem/fingerprint.hpp>
#include <idem/record.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace idem::admin {
namespace {

// Writing the file takes milliseconds.
constexpr auto wait_max = std::chrono::seconds(5);
constexpr auto pause = std::chrono::milliseconds(10);

std::string failed(const std::string& path, int error) {
  return path + ": " + std::strerror(error);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool open() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }

 private:
  int number_;
};

FileVersion version_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_size,
          std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec};
}

std::optional<std::string> why_untrusted(const struct stat& status, Others others, Owner owner) {
  if (!S_ISREG(status.st_mode)) return "is no regular file";
  const bool any_owner = owner == Owner::anyones_for_root && ::geteuid() == 0;
  if (!any_owner && status.st_uid != ::geteuid() && status.st_uid != 0) {
    return "belongs to another user, who could change it";
  }
  const bool for_reading = others == Others::may_read;
  if ((status.st_mode & (for_reading ? 0022 : 0077)) == 0) return std::nullopt;
  return for_reading ? "others may change it: chmod 0644" : "others may read it: chmod 0600";
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Gives what root writes to the owner of the file, or else of its folder, so that the process
/// whose file it is can still use it. The error says why not.
std::optional<std::string> leave_to_owner(int descriptor, const std::string& path, Owner owner) {
  if (owner == Owner::self || ::geteuid() != 0) return std::nullopt;
  struct stat status{};
  const bool is_there =
      ::stat(path.c_str(), &status) == 0 || ::stat(folder_of(path).c_str(), &status) == 0;
  if (!is_there || ::fchown(descriptor, status.st_uid, status.st_gid) != 0) {
    return failed(path, errno);
  }
  return std::nullopt;
}

/// As the file's owner has closed it to others; of a new one as it is needed.
mode_t mode_for(const std::string& path, Others others) {
  const mode_t most = others == Others::may_read ? 0644 : 0600;
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? (status.st_mode & most) | 0600 : most;
}

/// A new file beside `path` with the content, on the disk. The error says why not.
std::expected<std::string, std::string> write_beside(const std::string& path, Others others,
                                                     std::string_view content, Owner owner) {
  const std::string beside = path + '.' + to_hex(random_token().bytes);
  const Descriptor file(
      ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.open()) return std::unexpected(failed(path, errno));
  const auto give_up = [&](std::string why) {
    ::unlink(beside.c_str());
    return std::unexpected(std::move(why));
  };
  if (auto why = leave_to_owner(file.number(), path, owner)) return give_up(std::move(*why));
  if (::fchmod(file.number(), mode_for(path, others)) != 0) return give_up(failed(path, errno));
  while (!content.empty()) {
    const auto written = ::write(file.number(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return give_up(failed(path, written < 0 ? errno : EIO));
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file.number()) != 0) return give_up(failed(path, errno));
  return beside;
}

std::expected<void, std::string> keep_name(const std::string& path) {
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open() || ::fsync(folder.number()) != 0) return std::unexpected(failed(path, errno));
  return {};
}

}  // namespace

std::optional<FileVersion> version_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return version_of(status);
}

std::expected<std::optional<SmallFile>, std::string> read_small_file(const std::string& path,
                                                                     Others others,
                                                                     std::size_t bytes_max,
                                                                     Owner owner) {
  // Only found, not opened yet: to open a device may already do something.
  const Descriptor found(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!found.open()) {
    if (errno == ENOENT) return std::nullopt;
    return std::unexpected(failed(path, errno));
  }
  struct stat status{};
  if (::fstat(found.number(), &status) != 0) return std::unexpected(failed(path, errno));
  if (const auto why = why_untrusted(status, others, owner)) {
    return std::unexpected(path + ": " + *why);
  }
  const std::string itself = "/proc/self/fd/" + std::to_string(found.number());
  const Descriptor file(::open(itself.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open() || ::fstat(file.number(), &status) != 0) {
    return std::unexpected(failed(path, errno));
  }
  SmallFile read{version_of(status), status.st_uid, std::string(bytes_max + 1, '\0')};
  std::size_t size = 0;
  while (size <= bytes_max) {
    const auto got = ::read(file.number(), read.content.data() + size, bytes_max + 1 - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(failed(path, errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > bytes_max) {
    return std::unexpected(path + ": is longer than " + std::to_string(bytes_max) + " bytes");
  }
  read.content.resize(size);
  return read;
}

std::expected<void, std::string> replace_small_file(const std::string& path, Others others,
                                                    std::string_view content, Owner owner) {
  const auto beside = write_beside(path, others, content, owner);
  if (!beside) return std::unexpected(beside.error());
  if (::rename(beside->c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside->c_str());
    return std::unexpected(failed(path, error));
  }
  return keep_name(path);
}

std::expected<bool, std::string> make_small_file(const std::string& path, Others others,
                                                 std::string_view content) {
  const auto beside = write_beside(path, others, content, Owner::self);
  if (!beside) return std::unexpected(beside.error());
  const int error = ::link(beside->c_str(), path.c_str()) == 0 ? 0 : errno;
  ::unlink(beside->c_str());
  if (error == EEXIST) return false;
  if (error != 0) return std::unexpected(failed(path, error));
  const auto kept = keep_name(path);
  if (!kept) return std::unexpected(kept.error());
  return true;
}

std::expected<FileLock, std::string> FileLock::hold(const std::string& path, Owner owner) {
  const std::string name = path + ".lock";
  const int descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return std::unexpected(failed(name, errno));
  FileLock lock(descriptor);
  if (auto why = leave_to_owner(descriptor, path, owner)) return std::unexpected(std::move(*why));
  const auto until = std::chrono::steady_clock::now() + wait_max;
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return std::unexpected(failed(name, errno));
    if (std::chrono::steady_clock::now() >= until) {
      return std::unexpected(name + ": another process holds it; try again");
    }
    std::this_thread::sleep_for(pause);
  }
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileLock::FileLock(FileLock&& from) noexcept : descriptor_(std::exchange(from.descriptor_, -1)) {}

}  // namespace idem::admin
