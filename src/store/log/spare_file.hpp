#pragma once

#include "store/log/background.hpp"
#include "store/log/numbered_files.hpp"

#include <atomic>
#include <cstdint>
#include <string>

namespace idem::segments {

/// A file of zeros in which the log can go on, made in the background. In a file whose blocks were
/// written once, a sync has neither blocks nor a length to make durable, and takes about 0.6 of the
/// time and of the processor.
class SpareFile {
 public:
  /// It is kept beside `files`; it has its full length and its name `spare` once it is whole.
  SpareFile(const NumberedFiles& files, std::uint64_t bytes, Background& background)
      : files_(files), bytes_(bytes), background_(background) {}

  /// Of a start: deletes what a crash left unfinished. `files` are open.
  void open();
  /// Begins to make it, if there is none.
  void prepare();
  bool is_ready() const noexcept { return state_.load(std::memory_order_acquire) == State::ready; }
  /// Its name; the caller renames it. There is none from now on.
  std::string take();

 private:
  enum class State : std::uint8_t { none, in_the_making, ready };
  void make();

  const NumberedFiles& files_;
  std::uint64_t bytes_;
  Background& background_;
  std::atomic<State> state_ = State::none;
};

}  // namespace idem::segments
