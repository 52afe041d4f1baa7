#pragma once

#include <idem/store.hpp>

#include <expected>
#include <string>

namespace idem::segments {

/// Whether a start would find a store in the directory `path`, whole or damaged. One whose making
/// was cut off is none: nobody got a confirmation from it.
bool has_store(const std::string& path);

/// The start of a store: makes its directory if there is none, and removes what is left of a making
/// that was cut off. Other starts of the same store are refused until this object is gone.
class Making {
 public:
  /// `path` is absolute. Refuses what is no directory, and a directory with other files than a
  /// store's. `unavailable`: another process is starting it.
  static std::expected<Making, StoreError> begin(const std::string& path);
  Making(Making&& other) noexcept;
  Making& operator=(Making&&) = delete;
  ~Making();

  /// The store's parts are all there, and durable but for their names. False: see errno.
  [[nodiscard]] bool finish();

 private:
  Making(std::string path, int folder) : path_(std::move(path)), folder_(folder) {}

  std::string path_;
  int folder_;  ///< Locked.
  bool is_new_ = false;
};

}  // namespace idem::segments
