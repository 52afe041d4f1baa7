#include "store/log/files.hpp"

#include "core/bytes/last_words.hpp"
#include "store/file_access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace idem::segments {

bool read_at(int file, std::uint64_t offset, std::size_t size, std::string& into) {
  into.resize(size);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n =
        ::pread(file, into.data() + got, size - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

std::optional<std::string> whole_file(int file) {
  struct stat facts{};
  std::string bytes;
  const bool good = file >= 0 && ::fstat(file, &facts) == 0 &&
                    read_at(file, 0, static_cast<std::size_t>(facts.st_size), bytes);
  return good ? std::optional(std::move(bytes)) : std::nullopt;
}

std::optional<std::string> whole_file(const std::string& path) {
  const OwnFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return whole_file(file.get());
}

bool write_whole(const std::string& folder, const std::string& path, std::string_view bytes) {
  const std::string part = path + ".part";
  {
    const OwnFile file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const auto size = static_cast<ssize_t>(bytes.size());
    if (file.get() < 0) return false;
    errno = ENOSPC;  // Of a write that ends early.
    if (::write(file.get(), bytes.data(), bytes.size()) != size || ::fsync(file.get()) != 0) {
      return false;
    }
  }
  if (::rename(part.c_str(), path.c_str()) != 0) return false;
  sync_folder(folder);
  return true;
}

void sync_folder(const OwnFile& opened, const std::string& folder) {
  if (::fsync(opened.get()) != 0) fail_closed(folder, "syncing the folder");
}

void sync_folder(const std::string& folder) {
  const OwnFile opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) fail_closed(folder, "opening the folder");
  sync_folder(opened, folder);
}

void fail_closed(const std::string& folder, std::string_view doing) noexcept {
  say_last_words("idem: log store failed path=" + folder + " doing=" + std::string(doing) + ": " +
                 words_on(errno, folder, folder) + "; stopping");
  std::abort();
}

}  // namespace idem::segments
