#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

/// Files of a few KiB that are read whole and replaced whole.
namespace idem::admin {

/// What changes when a file is replaced or written.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t changed_at = 0;  ///< Nanoseconds, of its content or its owner and mode.
  bool operator==(const FileVersion&) const = default;
};

struct SmallFile {
  FileVersion version{};
  std::uint32_t owner = 0;  ///< The user's number.
  std::string content{};
};

/// Who else than the owner (this process's user, or root) may do what with the file.
enum class Others : std::uint8_t { may_read, may_nothing };

/// None: there is no such file.
std::optional<FileVersion> version_of(const std::string& path);

/// Whose file may be read: this user's or root's, or, where this user is root, anyone's.
enum class Owner : std::uint8_t { self, anyones_for_root };

/// None: there is no such file. The error names the file: it is no regular file, longer than
/// `bytes_max`, belongs to another user, or others may do more than `others` says.
std::expected<std::optional<SmallFile>, std::string> read_small_file(const std::string& path,
                                                                     Others others,
                                                                     std::size_t bytes_max,
                                                                     Owner owner = Owner::self);

/// Replaces the file in one step, durably: a reader sees the old content or the new one, also
/// after a crash. `others` gives the mode, 0644 or 0600. With Owner::anyones_for_root, root leaves
/// the file to the owner of the one before, or else of the folder.
std::expected<void, std::string> replace_small_file(const std::string& path, Others others,
                                                    std::string_view content, Owner owner);

/// Makes the file, unless there is one: false. Nobody ever sees a part of it.
std::expected<bool, std::string> make_small_file(const std::string& path, Others others,
                                                 std::string_view content);

/// While it lives, no other holder of the same path exists, in any process.
class FileLock {
 public:
  /// Locks `path` + ".lock", which stays behind. Waits for 5 s at most: any
  /// process that can open the file may hold it.
  static std::expected<FileLock, std::string> hold(const std::string& path, Owner owner);
  ~FileLock();
  FileLock(FileLock&& from) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace idem::admin
