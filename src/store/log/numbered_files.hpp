#pragma once

#include "store/log/files.hpp"

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::segments {

/// How many files a look has open: no other process deletes some before a start.
enum class Holding : bool { few, all };

/// The files of a folder whose names are numbers. Used by one thread. A failure ends the process,
/// but for those that open() and open_file() return. All is done in the folder that was opened,
/// also if it was moved since and another store's is at its path.
class NumberedFiles {
 public:
  /// `suffix`: with its dot. `is_direct`: they are written past the kernel's cache, where the file
  /// system can do that (O_DIRECT).
  NumberedFiles(std::string folder, std::string suffix, bool is_direct = false)
      : folder_(std::move(folder)), suffix_(std::move(suffix)), is_direct_(is_direct) {}
  /// No more than so many are open at once.
  void keep_open_at_most(int files) { open_files_max_ = files; }
  ~NumberedFiles();
  NumberedFiles(const NumberedFiles&) = delete;
  NumberedFiles& operator=(const NumberedFiles&) = delete;

  /// Makes the folder if it is not there, and looks what is in it. The error is a sentence.
  std::expected<void, std::string> open();
  /// Likewise, but makes nothing. With Holding::all it opens all of them, so that they stay
  /// although another process deletes them; only their descriptors are of use then, and not for
  /// writing.
  std::expected<void, std::string> look(Holding holding = Holding::all);

  bool has(std::uint32_t number) const { return files_.contains(number); }
  bool is_empty() const noexcept { return files_.empty(); }
  std::uint32_t first() const { return files_.begin()->first; }
  std::uint32_t last() const { return files_.rbegin()->first; }
  std::vector<std::uint32_t> numbers() const;
  std::string path_of(std::uint32_t number) const;

  /// -1: there is no such file, or it cannot be opened. Keeps the newest open.
  int file(std::uint32_t number);
  /// 0: there is no such file.
  std::uint64_t size_of(std::uint32_t number) const;
  /// None: it cannot be read.
  std::optional<std::string> whole(std::uint32_t number) const;
  /// Makes the file; its name is durable when this returns.
  void make(std::uint32_t number);
  /// Gives a file another number; its name is durable once the folder is synced.
  void rename(std::uint32_t from, std::uint32_t to);
  /// Gives a file of the folder that is none of these a number, likewise.
  void adopt(const std::string& name, std::uint32_t number);
  void remove(std::uint32_t number);
  /// Likewise, but the file keeps its blocks until the caller closes the descriptor that it gets:
  /// with 64 MiB in the kernel's cache that takes 16 ms. -1: there is no such file, or it cannot
  /// be opened, and its blocks are given back at once.
  int unlink(std::uint32_t number);

  /// Of any thread: the names are durable when this returns.
  void sync_names() const { sync_folder(opened_, folder_); }

  const std::string& folder() const noexcept { return folder_; }
  /// Of the opened folder.
  int descriptor() const noexcept { return opened_.get(); }

  [[noreturn]] void fail_closed(std::string_view doing) const noexcept;

 private:
  std::expected<void, std::string> read_folder();
  std::string name_of(std::uint32_t number) const;
  int open_file(std::uint32_t number, int how);
  void keep_open(std::uint32_t number, int file);

  std::string folder_;
  std::string suffix_;
  OwnFile opened_{-1};
  std::map<std::uint32_t, int> files_;  ///< -1: not open.
  int open_files_max_ = 128;
  int open_files_ = 0;
  bool is_direct_;
  bool is_look_ = false;
};

}  // namespace idem::segments
