#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

/// How the fuzzer's bytes reach what is tested.
namespace idem::fuzz {

/// A copy in a heap block of just its size, so that AddressSanitizer sees a read past its end.
class ExactBytes {
 public:
  explicit ExactBytes(std::string_view bytes)
      : block_(new char[bytes.size()]), size_(bytes.size()) {
    std::ranges::copy(bytes, block_.get());
  }
  std::string_view view() const noexcept { return {block_.get(), size_}; }

 private:
  std::unique_ptr<char[]> block_;
  std::size_t size_;
};

/// Lengths to cut an input into. They follow from the input alone, so that a finding can be
/// repeated and every seed is read as it looks: no byte of it has another meaning.
class Pieces {
 public:
  explicit Pieces(std::string_view input) : state_(1469598103934665603U) {
    for (const char c : input) state_ = (state_ ^ static_cast<unsigned char>(c)) * 1099511628211U;
    // Each piece costs a parse of all before it, so that long inputs get about 64 at most.
    const std::size_t shortest = input.size() < 256 ? 1 : input.size() / 32;
    piece_max_ = shortest + next() % (1 + input.size() / 8);
    if (input.size() < 256 && next() % 4 == 0) piece_max_ = 1;
  }

  /// From 1 to `left`; 0 when nothing is left.
  std::size_t piece(std::size_t left) noexcept {
    return std::min<std::size_t>(left, 1 + next() % piece_max_);
  }
  /// From 0 to `end`, both included.
  std::size_t position(std::size_t end) noexcept { return next() % (end + 1); }

 private:
  std::uint64_t next() noexcept {  // splitmix64
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
  std::uint64_t piece_max_ = 1;
};

/// `input` with each `0x1A n c` written out as 64 × n times `c`, so that a short input gets near
/// limits of many kilobytes. Nothing is lost by it: every parser here refuses the byte 0x1A like
/// its neighbours.
inline std::string with_runs(std::string_view input) {
  constexpr std::size_t size_max = 20'000;
  std::string out;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (input[i] == '\x1A' && input.size() - i > 2) {
      const auto run = 64 * std::size_t{static_cast<unsigned char>(input[i + 1])};
      out.append(std::min(run, size_max - std::min(size_max, out.size())), input[i + 2]);
      i += 2;
    } else {
      out += input[i];
    }
  }
  return out;
}

}  // namespace idem::fuzz
