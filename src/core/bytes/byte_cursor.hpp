#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>

/// Whole numbers, byte arrays and length-framed texts to and from the bytes in a store. Numbers are
/// little-endian; the length of a text, 32 bits, is before it.
namespace idem {

template <std::unsigned_integral T>
T little_endian(T value) noexcept {
  return std::endian::native == std::endian::little ? value : std::byteswap(value);
}

constexpr std::size_t framed_bytes(std::string_view text) noexcept {
  return sizeof(std::uint32_t) + text.size();
}

/// Writes into memory that the caller has sized; checks nothing.
class ByteWriter {
 public:
  explicit ByteWriter(char* out) noexcept : at_(out) {}

  template <std::unsigned_integral T>
  void number(T value) noexcept {
    value = little_endian(value);
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  template <std::size_t N>
  void bytes(const std::array<std::uint8_t, N>& from) noexcept {
    std::memcpy(at_, from.data(), N);
    at_ += N;
  }
  /// `text` is shorter than 4 GiB.
  void framed(std::string_view text) noexcept {
    number(static_cast<std::uint32_t>(text.size()));
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }

  const char* at() const noexcept { return at_; }

 private:
  char* at_;
};

/// Never reads past the end: from the first read that would, all reads return zeros and
/// is_cut_short() is true, so one check at the end is enough.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) noexcept : rest_(bytes) {}

  template <std::unsigned_integral T>
  T number() noexcept {
    T value = 0;
    take(sizeof value).copy(reinterpret_cast<char*>(&value), sizeof value);
    return little_endian(value);
  }
  template <std::size_t N>
  void bytes(std::array<std::uint8_t, N>& out) noexcept {
    take(N).copy(reinterpret_cast<char*>(out.data()), N);
  }
  std::string_view framed() noexcept { return take(number<std::uint32_t>()); }

  bool is_cut_short() const noexcept { return cut_short_; }
  bool is_at_end() const noexcept { return rest_.empty(); }

 private:
  std::string_view take(std::size_t size) noexcept {
    if (cut_short_ || size > rest_.size()) {
      cut_short_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool cut_short_ = false;
};

}  // namespace idem
