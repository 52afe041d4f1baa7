#include "store/log/making.hpp"

#include "store/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace idem::segments {
namespace {

namespace fs = std::filesystem;

/// It is there while the store is made. Without it a start could not tell a store whose making was
/// cut off from one that lost a part.
constexpr const char* mark_name = "unfinished";
constexpr std::string_view progress_name = "mark";
constexpr std::string_view progress_part_name = "mark.part";  ///< While it is written.
constexpr std::array<std::string_view, 5> parts{"index", "commits", "records", "ids",
                                                progress_name};
/// At the root of an ext4 file system.
constexpr const char* found_name = "lost+found";

std::string mark_of(const std::string& path) { return path + "/" + mark_name; }

/// A making confirms nothing: it writes neither a frame, nor a version, nor an id, and no entry of
/// the index. A mark of progress alone is nothing to lose.
bool is_left_by_a_making(const fs::path& part) {
  const std::string name = part.filename().string();
  if (name == progress_name || name == progress_part_name) return true;
  std::error_code code;
  const auto inner = names_in(part, code);
  if (code) return false;
  return std::ranges::all_of(inner, [&](const std::string& file) {
    if (name == "index") return !file.ends_with(".sst");
    return name == "commits" && (file == "format" || file == "format.part");
  });
}

/// The first of `names` in the directory that a making did not make.
std::optional<std::string> first_of_others(const fs::path& path,
                                           const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool is_a_part =
        std::ranges::find(parts, name) != parts.end() || name == progress_part_name;
    if (!is_a_part || !is_left_by_a_making(path / name)) return name;
  }
  return std::nullopt;
}

std::unexpected<StoreError> making_refused(std::string why) {
  return std::unexpected(StoreError{StoreError::Code::refused, std::move(why)});
}

std::unexpected<StoreError> cannot(const std::string& path, const char* doing) {
  return making_refused(file_failure(path, doing, errno));
}

bool put_mark(const std::string& path) {
  const int mark = ::open(mark_of(path).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (mark < 0) return false;
  ::close(mark);
  return make_durable(path) && make_durable(fs::path(path).parent_path());
}

}  // namespace

bool has_store(const std::string& path) {
  std::error_code code;
  return !fs::exists(mark_of(path), code) && std::ranges::any_of(parts, [&](std::string_view part) {
    return fs::exists(fs::path(path) / part, code);
  });
}

namespace {

/// What fsck has found. mke2fs gives the folder to root alone, but how many folders are in it
/// anybody may see.
bool may_have_parts(const fs::path& found) {
  std::error_code code;
  if (!names_in(found, code).empty()) return true;
  return code && fs::hard_link_count(found, code) > 2 && !code;
}

}  // namespace

std::expected<bool, std::string> has_store_or_room(const std::string& path) {
  std::error_code code;
  std::vector<std::string> names = names_in(path, code);
  if (code) return std::unexpected(file_failure(path, "cannot be read", code.value()));
  const bool has_mark = std::erase(names, mark_name) > 0;
  if (std::erase(names, found_name) > 0 && names.empty() &&
      may_have_parts(fs::path(path) / found_name)) {
    return std::unexpected(fmt::format(
        "{}: has nothing but files in {}, which may be those of a store: look at them, and move "
        "them away",
        path, found_name));
  }
  if (!has_mark && !names.empty()) {
    if (has_store(path)) return true;
    return std::unexpected(fmt::format(
        "{}: has other files and no store; write the path of a new or an empty directory", path));
  }
  const auto other = first_of_others(path, names);
  if (!other) return false;
  return std::unexpected(fmt::format(
      "{}: has the file {}, which the making of a store leaves when it is cut off, beside {}, "
      "which it did not make: if that is a store that you brought back, delete {}",
      path, mark_name, *other, mark_of(path)));
}

std::expected<Making, StoreError> Making::begin(const std::string& path) {
  std::error_code code;
  const auto parent = fs::path(path).parent_path();
  if (!fs::is_directory(parent, code)) {
    return making_refused(
        fmt::format("{}: the directory {} does not exist; make it, or write another path", path,
                    parent.string()));
  }
  if (fs::exists(path, code) && !fs::is_directory(path, code)) {
    return making_refused(path + ": is a file, and the store is a directory");
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return cannot(path, "cannot be created");
  DirectoryLock lock(path);
  if (!lock.take()) {
    if (errno != EWOULDBLOCK) return cannot(path, "cannot be locked");
    return std::unexpected(StoreError{StoreError::Code::unavailable, owned_by_another(path)});
  }
  Making making(path, std::move(lock));
  const auto has = has_store_or_room(path);
  if (!has) return making_refused(has.error());
  if (*has) return making;
  if (!put_mark(path)) return cannot(path, "cannot be written to");
  making.is_new_ = true;
  if (!making.remove_parts()) return cannot(path, "cannot be cleared");
  return making;
}

bool Making::remove_parts() const {
  return std::ranges::all_of(parts, [&](std::string_view part) {
    std::error_code code;
    fs::remove_all(fs::path(path_) / part, code);
    errno = code.value();
    return !code;
  });
}

Making::Making(Making&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::move(other.lock_)),
      is_new_(std::exchange(other.is_new_, false)) {}

Making::~Making() {
  if (!is_new_) return;
  const int error = errno;
  if (remove_parts()) ::unlink(mark_of(path_).c_str());
  errno = error;
}

bool Making::finish() {
  if (!is_new_) return true;
  if (!make_durable(path_)) return false;
  is_new_ = false;  // Nothing is removed any more.
  return ::unlink(mark_of(path_).c_str()) == 0 && make_durable(path_);
}

DirectoryLock::DirectoryLock(const std::string& path)
    : path_(path),
      folder_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      error_(folder_ < 0 ? errno : 0) {}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : path_(std::move(other.path_)),
      folder_(std::exchange(other.folder_, -1)),
      error_(other.error_) {}

DirectoryLock::~DirectoryLock() {
  if (folder_ >= 0) ::close(folder_);
}

bool DirectoryLock::take() const {
  if (folder_ < 0) errno = error_;
  if (folder_ < 0 || ::flock(folder_, LOCK_EX | LOCK_NB) != 0) return false;
  struct stat mine{};
  struct stat present{};
  if (::fstat(folder_, &mine) != 0 || ::stat(path_.c_str(), &present) != 0) return false;
  if (mine.st_dev == present.st_dev && mine.st_ino == present.st_ino) return true;
  errno = EWOULDBLOCK;  // A restore put another directory there meanwhile.
  return false;
}

std::optional<std::string> why_no_access(const std::string& path, FileUse use) {
  std::vector<FilePart> files{{path, false}, {mark_of(path)}};
  for (const std::string_view part : parts) files.push_back({path + "/" + std::string(part)});
  files.push_back({path + "/shards"});
  return idem::why_no_access(path, files, use);
}

std::string owned_by_another(const std::string& path) {
  return fmt::format(
      "another process owns {0}: one store serves one process at a time (fuser -v {0}/index/LOCK "
      "names it)",
      path);
}

bool is_being_made(const std::string& path) {
  std::error_code code;
  return fs::exists(mark_of(path), code);
}

}  // namespace idem::segments
