#include "store/log/numbered_files.hpp"

#include "store/file_access.hpp"
#include "store/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

namespace idem::segments {
NumberedFiles::~NumberedFiles() {
  for (const auto& [number, file] : files_) {
    if (file >= 0) ::close(file);
  }
}

std::expected<void, std::string> NumberedFiles::open() {
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(
        fmt::format("{} cannot be made: {}", folder_, words_on(errno, folder_, folder_)));
  }
  return read_folder();
}

std::expected<void, std::string> NumberedFiles::look(Holding holding) {
  if (auto read = read_folder(); !read || holding == Holding::few) return read;
  is_look_ = true;
  for (auto& [number, file] : files_) {
    file = ::openat(opened_.get(), name_of(number).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      return std::unexpected(fmt::format("{} cannot be read: {}", path_of(number),
                                         words_on(errno, path_of(number), folder_)));
    }
  }
  return {};
}

std::expected<void, std::string> NumberedFiles::read_folder() {
  opened_ = OwnFile(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened_.get() < 0) {
    return std::unexpected(
        fmt::format("{} cannot be read: {}", folder_, words_on(errno, folder_, folder_)));
  }
  std::error_code code;
  for (const std::string& name : names_in(folder_, code)) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number, 10);
    if (error == std::errc{} && number > 0 && std::string_view(end) == suffix_) files_[number] = -1;
  }
  if (code) return std::unexpected(fmt::format("{} cannot be read: {}", folder_, code.message()));
  return {};
}

std::vector<std::uint32_t> NumberedFiles::numbers() const {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, file] : files_) numbers.push_back(number);
  return numbers;
}

std::string NumberedFiles::name_of(std::uint32_t number) const {
  return fmt::format("{:08}{}", number, suffix_);
}

std::string NumberedFiles::path_of(std::uint32_t number) const {
  return folder_ + "/" + name_of(number);
}

int NumberedFiles::file(std::uint32_t number) {
  const auto found = files_.find(number);
  if (found == files_.end()) return -1;
  if (found->second < 0) {
    const int file = open_file(number, O_RDWR | O_CLOEXEC);
    if (file >= 0) keep_open(number, file);
  }
  return found->second;
}

std::uint64_t NumberedFiles::size_of(std::uint32_t number) const {
  struct stat facts{};
  const auto found = files_.find(number);
  if (found == files_.end()) return 0;
  const bool good = found->second >= 0
                        ? ::fstat(found->second, &facts) == 0
                        : ::fstatat(opened_.get(), name_of(number).c_str(), &facts, 0) == 0;
  return good ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

// Not by a descriptor for direct writes: it would need aligned memory.
std::optional<std::string> NumberedFiles::whole(std::uint32_t number) const {
  if (is_look_) return whole_file(files_.at(number));
  const OwnFile file(::openat(opened_.get(), name_of(number).c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 ? whole_file(file.get()) : std::nullopt;
}

int NumberedFiles::open_file(std::uint32_t number, int how) {
  const std::string name = name_of(number);
  if (is_direct_) {
    const int file = ::openat(opened_.get(), name.c_str(), how | O_DIRECT, 0600);
    if (file >= 0 || errno != EINVAL) return file;
    is_direct_ = false;
    how &= ~O_EXCL;  // The attempt may have made it.
  }
  return ::openat(opened_.get(), name.c_str(), how, 0600);
}

void NumberedFiles::keep_open(std::uint32_t number, int file) {
  if (open_files_ >= open_files_max_) {
    // The oldest, as the newest are asked for most.
    const auto oldest =
        std::ranges::find_if(files_, [](const auto& one) { return one.second >= 0; });
    ::close(std::exchange(oldest->second, -1));
    --open_files_;
  }
  files_[number] = file;
  ++open_files_;
}

void NumberedFiles::make(std::uint32_t number) {
  const int file = open_file(number, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC);
  if (file < 0 || ::fsync(file) != 0) fail_closed("making a file");
  sync_names();
  keep_open(number, file);
}

void NumberedFiles::rename(std::uint32_t from, std::uint32_t to) {
  const int folder = opened_.get();
  if (::renameat(folder, name_of(from).c_str(), folder, name_of(to).c_str()) != 0) {
    fail_closed("renaming a file");
  }
  auto moved = files_.extract(from);
  moved.key() = to;
  files_.insert(std::move(moved));
}

void NumberedFiles::adopt(const std::string& name, std::uint32_t number) {
  const int folder = opened_.get();
  if (::renameat(folder, name.c_str(), folder, name_of(number).c_str()) != 0) {
    fail_closed("renaming a file");
  }
  files_[number] = -1;
}

void NumberedFiles::remove(std::uint32_t number) {
  if (const int descriptor = unlink(number); descriptor >= 0) ::close(descriptor);
}

int NumberedFiles::unlink(std::uint32_t number) {
  if (!has(number)) return -1;
  const int descriptor = file(number);
  if (descriptor >= 0) --open_files_;
  files_.erase(number);
  if (::unlinkat(opened_.get(), name_of(number).c_str(), 0) != 0) fail_closed("deleting a file");
  return descriptor;
}

void NumberedFiles::fail_closed(std::string_view doing) const noexcept {
  segments::fail_closed(folder_, doing);
}

}  // namespace idem::segments
