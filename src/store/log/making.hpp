#pragma once

#include "store/file_access.hpp"

#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <string>

namespace idem::segments {

/// Whether a start would find a store in the directory `path`, whole or damaged. One whose making
/// was cut off is none: nobody got a confirmation from it.
bool has_store(const std::string& path);
/// Its making is under way, or was cut off.
bool is_being_made(const std::string& path);

/// Why this process may not use the store in the directory `path`, or a part of it: asked before
/// anything takes a part that cannot be opened for one that is missing or damaged.
std::optional<std::string> why_no_access(const std::string& path, FileUse use);

/// True: a start opens what is in the directory. False: it makes a store there, because there is
/// none, or one whose making was cut off. The error, a sentence: it refuses the directory.
std::expected<bool, std::string> has_store_or_room(const std::string& path);

/// "another process owns PATH: ..."
std::string owned_by_another(const std::string& path);

/// Of a store's directory: of the one that is at its path. A process with the store holds it, and
/// a restore that puts another directory there.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& path);
  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

  /// False: see errno, which is EWOULDBLOCK if another process has it, and ENOTDIR if there is a
  /// file.
  [[nodiscard]] bool take() const;

 private:
  std::string path_;
  int folder_;
  int error_;  ///< Why it is not open.
};

/// The start of a store: makes its directory if there is none, and removes what is left of a making
/// that was cut off. Other starts of the same store, and restores, are refused until this object is
/// gone.
class Making {
 public:
  /// `path` is absolute. Refuses what is no directory, and a directory with other files than a
  /// store's. `unavailable`: another process has it.
  static std::expected<Making, StoreError> begin(const std::string& path);
  Making(Making&& other) noexcept;
  Making& operator=(Making&&) = delete;
  /// Unless it was finished, removes what was made.
  ~Making();

  /// There was no store, or the making of one was cut off.
  bool is_new() const noexcept { return is_new_; }

  /// The store's parts are all there, and durable but for their names. False: see errno.
  [[nodiscard]] bool finish();

 private:
  Making(std::string path, DirectoryLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  [[nodiscard]] bool remove_parts() const;

  std::string path_;
  DirectoryLock lock_;
  bool is_new_ = false;
};

}  // namespace idem::segments
