#include "store/log/making.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace idem::segments {
namespace {

/// It is there while the store is made. Without it a start could not tell a store whose making was
/// cut off from one that lost a part.
constexpr const char* mark_name = "unfinished";
constexpr std::array parts{"index", "commits", "records", "ids"};
/// At the root of an ext4 file system.
constexpr const char* found_name = "lost+found";

std::string mark_of(const std::string& path) { return path + "/" + mark_name; }

std::unexpected<StoreError> refused(std::string why) {
  return std::unexpected(StoreError{StoreError::Code::refused, std::move(why)});
}

std::unexpected<StoreError> cannot(const std::string& path, const char* what) {
  return refused(fmt::format("{}: cannot be {}: {}", path, what, std::strerror(errno)));
}

bool sync_directory(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool is_synced = folder >= 0 && ::fsync(folder) == 0;
  if (folder >= 0) ::close(folder);
  return is_synced;
}

bool put_mark(const std::string& path) {
  const int mark = ::open(mark_of(path).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (mark < 0) return false;
  ::close(mark);
  return sync_directory(path) && sync_directory(std::filesystem::path(path).parent_path());
}

}  // namespace

bool has_store(const std::string& path) {
  std::error_code code;
  return !std::filesystem::exists(mark_of(path), code) &&
         std::ranges::any_of(parts, [&](const char* part) {
           return std::filesystem::exists(std::filesystem::path(path) / part, code);
         });
}

std::expected<Making, StoreError> Making::begin(const std::string& path) {
  std::error_code code;
  const auto parent = std::filesystem::path(path).parent_path();
  if (!std::filesystem::is_directory(parent, code)) {
    return refused(fmt::format("{}: the directory {} does not exist", path, parent.string()));
  }
  if (std::filesystem::exists(path, code) && !std::filesystem::is_directory(path, code)) {
    return refused(path + ": is a file, and the store is a directory");
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return cannot(path, "created");
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return cannot(path, "opened");
  Making making(path, folder);
  if (::flock(folder, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return cannot(path, "locked");
    return std::unexpected(StoreError{StoreError::Code::unavailable,
                                      fmt::format("another process is opening {}", path)});
  }
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path, code)) {
    names.insert(entry.path().filename().string());
  }
  if (code) {
    errno = code.value();
    return cannot(path, "read");
  }
  names.erase(found_name);
  making.is_new_ = names.empty() || names.erase(mark_name) > 0;
  if (!making.is_new_) {
    if (has_store(path)) return making;
    return refused(fmt::format(
        "{}: has other files and no store; write the path of a new or an empty directory", path));
  }
  if (!put_mark(path)) return cannot(path, "written to");
  for (const std::string& name : names) {
    std::filesystem::remove_all(std::filesystem::path(path) / name, code);
    if (!code) continue;
    errno = code.value();
    return cannot(path + "/" + name, "removed");
  }
  return making;
}

Making::Making(Making&& other) noexcept
    : path_(std::move(other.path_)),
      folder_(std::exchange(other.folder_, -1)),
      is_new_(other.is_new_) {}

Making::~Making() {
  if (folder_ >= 0) ::close(folder_);
}

bool Making::finish() {
  if (!is_new_) return true;
  return ::fsync(folder_) == 0 && ::unlink(mark_of(path_).c_str()) == 0 && ::fsync(folder_) == 0;
}

}  // namespace idem::segments
