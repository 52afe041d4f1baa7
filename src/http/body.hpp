#pragma once

#include "http/chunked.hpp"
#include "http/wire.hpp"

#include <expected>

namespace idem::http {

/// Reads one message body off a wire, whatever its framing. Pieces are views into the wire's buffer
/// and valid until the next call.
class BodyReader {
 public:
  enum class Trouble : std::uint8_t { closed, malformed, timeout };
  struct Failure {
    Trouble trouble;
    Refusal refusal;  ///< Where malformed.
  };

  void begin(Framing framing, std::uint64_t content_length) noexcept;
  /// The next piece; empty at the end, and from then on.
  Task<std::expected<std::string_view, Failure>> next(Wire& wire);
  /// The bytes of it that the wire holds already, without waiting: empty where there are none, or
  /// at the end.
  std::expected<std::string_view, Failure> next_if_here(Wire& wire);
  bool finished() const noexcept { return finished_; }
  /// True when every byte of the body already lies in the wire's buffer.
  bool is_buffered(const Wire& wire) const noexcept;
  std::uint64_t left() const noexcept { return left_; }
  Framing framing() const noexcept { return framing_; }

 private:
  std::expected<std::string_view, Failure> take(Wire& wire);

  Framing framing_ = Framing::none;
  std::uint64_t left_ = 0;
  bool finished_ = true;
  ChunkDecoder chunks_;
};

}  // namespace idem::http
