#pragma once

#include <cstdint>

/// What the trace of a process's disk is made of (disk_trace.cpp writes it, support/power_loss.cpp
/// reads it): one TraceStep after the other, each with `bytes` bytes behind it.
namespace idem::test {

struct TraceStep {
  enum class Kind : std::uint32_t {
    seen,  ///< The file or folder `node` was there before, at the path in the bytes.
    made,  ///< `node` is new, at the path in the bytes.
    made_folder,
    renamed,   ///< Path, a zero byte, and the path from now on.
    unlinked,  ///< The path.
    written,   ///< The bytes came to `node` at `at`.
    written_durably,
    resized,     ///< To `at`.
    sync_begun,  ///< Of `node`, number `at`. Bytes written from now on are not in it.
    sync_done,   ///< Of `node`, that number.
    said,        ///< The bytes went to descriptor 3, where others read them.
    unknown,     ///< A call that this trace cannot describe: the bytes name it.
  };
  Kind kind{};
  std::uint32_t node = 0;
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
};

}  // namespace idem::test
