#pragma once

#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// What the parts of the store do with files.
namespace idem::segments {

/// A secret of the store's: bytes of another one, or of a client, do not fit.
using StoreTag = std::array<std::uint8_t, 16>;

/// A descriptor, closed at the end; -1: none.
class OwnFile {
 public:
  explicit OwnFile(int file) noexcept : file_(file) {}
  OwnFile(OwnFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  OwnFile& operator=(OwnFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~OwnFile() {
    if (file_ >= 0) ::close(file_);
  }
  int get() const noexcept { return file_; }

 private:
  int file_;
};

/// All of it, or false.
bool read_at(int file, std::uint64_t offset, std::size_t size, std::string& into);
/// None: it cannot be read.
std::optional<std::string> whole_file(int file);
std::optional<std::string> whole_file(const std::string& path);

/// Makes a file in `folder`, or replaces it: it is durable when this returns, or as it was. False:
/// see errno.
[[nodiscard]] bool write_whole(const std::string& folder, const std::string& path,
                               std::string_view bytes);
/// The names in it are durable when this returns. A failure ends the process.
void sync_folder(const std::string& folder);
/// Likewise of the opened one, also if it was moved since.
void sync_folder(const OwnFile& opened, const std::string& folder);

/// Says what failed, with errno, and ends the process.
[[noreturn]] void fail_closed(const std::string& folder, std::string_view doing) noexcept;

}  // namespace idem::segments
