#include "cli/settings/secret_file.hpp"

#include "store/file_access.hpp"

#include <idem/limits.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace idem::cli {
namespace {

struct Descriptor {
  int number = -1;
  explicit Descriptor(const std::string& path)
      // A pipe without a writer must not block the start.
      : number(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

std::expected<void, std::string> check(const Descriptor& file, const std::string& path) {
  struct stat status{};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) {
    return std::unexpected(with_advice(path + ": " + std::strerror(errno), path));
  }
  if (!S_ISREG(status.st_mode)) return std::unexpected(path + ": is no regular file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return std::unexpected(path +
                           ": belongs to another user, who could change it: give it to "
                           "this one (chown)");
  }
  // The group may read: secrets are mounted so for a user other than root.
  if ((status.st_mode & 0027) != 0) {
    return std::unexpected(path + ": others may read it, or its group may write it: chmod 0400");
  }
  return {};
}

}  // namespace

std::expected<void, std::string> check_secret_file(const std::string& path) {
  return check(Descriptor(path), path);
}

std::expected<Secret, std::string> read_secret_file(const std::string& path) {
  const Descriptor file(path);
  if (auto good = check(file, path); !good) return std::unexpected(std::move(good.error()));
  std::string material(limits::secret_file_bytes_max + 1, '\0');
  const ssize_t size = ::read(file.number, material.data(), material.size());
  if (size < 0) return std::unexpected(path + ": " + std::strerror(errno));
  material.resize(static_cast<std::size_t>(size));
  while (material.ends_with('\n') || material.ends_with('\r')) material.pop_back();
  if (material.size() < limits::secret_file_bytes_min ||
      material.size() > limits::secret_file_bytes_max) {
    return std::unexpected(path + ": holds " + std::to_string(material.size()) +
                           " bytes of key material; write " +
                           std::to_string(limits::secret_file_bytes_min) + " to " +
                           std::to_string(limits::secret_file_bytes_max) +
                           ", for instance with: openssl rand -base64 48");
  }
  return secret_from(material);
}

}  // namespace idem::cli
