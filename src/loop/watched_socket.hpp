#pragma once

#include "loop/loop.hpp"

#include <cstdint>
#include <memory>

namespace idem {

/// A socket that a client library owns, closes, reads and writes: only the waiting is the loop's.
/// Loop's thread only.
class WatchedSocket {
 public:
  enum class Way : std::uint8_t { readable, writable };

  WatchedSocket(Loop& loop, int socket);
  /// Ends the waits, with false. The socket stays open.
  ~WatchedSocket();
  WatchedSocket(const WatchedSocket&) = delete;
  WatchedSocket& operator=(const WatchedSocket&) = delete;

  /// Resumes with true when the socket is so, with false after cancel().
  void wait(Way way, Resumption<bool> done);
  void cancel();

 private:
  struct Descriptor;
  std::unique_ptr<Descriptor> descriptor_;
};

}  // namespace idem
