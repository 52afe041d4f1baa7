#include "http/body.hpp"

#include <algorithm>

namespace idem::http {

void BodyReader::begin(Framing framing, std::uint64_t content_length) noexcept {
  framing_ = framing;
  left_ = framing == Framing::content_length ? content_length : 0;
  finished_ = framing == Framing::none || (framing == Framing::content_length && left_ == 0);
  if (framing == Framing::chunked) chunks_.reset();
}

bool BodyReader::is_buffered(const Wire& wire) const noexcept {
  return finished_ || (framing_ == Framing::content_length && left_ <= wire.unread().size());
}

// The bytes in the buffer; empty and not finished means that more are needed.
std::expected<std::string_view, BodyReader::Failure> BodyReader::take(Wire& wire) {
  const std::string_view unread = wire.unread();
  if (framing_ == Framing::chunked) {
    std::string_view rest = unread;
    while (!rest.empty()) {
      const auto step = chunks_.feed(rest);
      if (!step) return std::unexpected(Failure{Trouble::malformed, step.error()});
      wire.consume(step->consumed);
      rest.remove_prefix(step->consumed);
      finished_ = step->finished;
      if (finished_ || !step->data.empty()) return step->data;
      if (step->consumed == 0) break;
    }
    return std::string_view{};
  }
  std::size_t size = unread.size();
  if (framing_ == Framing::content_length) {
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
    left_ -= size;
    finished_ = left_ == 0;
  }
  wire.consume(size);
  return unread.substr(0, size);
}

std::expected<std::string_view, BodyReader::Failure> BodyReader::next_if_here(Wire& wire) {
  return finished_ ? std::string_view{} : take(wire);
}

Task<std::expected<std::string_view, BodyReader::Failure>> BodyReader::next(Wire& wire) {
  using Piece = std::expected<std::string_view, Failure>;
  while (!finished_) {
    Piece piece = take(wire);
    if (!piece || !piece->empty() || finished_) co_return piece;
    const std::size_t got = co_await wire.read_some();
    if (got > 0) continue;
    if (framing_ == Framing::until_close && wire.trouble() == Wire::Trouble::eof) {
      finished_ = true;
      break;
    }
    const Trouble trouble =
        wire.trouble() == Wire::Trouble::timeout ? Trouble::timeout : Trouble::closed;
    co_return Piece(std::unexpected(Failure{trouble, {}}));
  }
  co_return Piece(std::string_view{});
}

}  // namespace idem::http
