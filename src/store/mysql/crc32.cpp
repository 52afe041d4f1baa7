#include "store/mysql/crc32.hpp"

#include <array>
#include <cstddef>

namespace idem::mysql {
namespace {

constexpr std::uint32_t polynomial = 0xedb88320U;  // With its bits reversed.
constexpr std::size_t stride = 8;                  // Bytes that one step takes.

using Table = std::array<std::uint32_t, 256>;

/// `tables[n][b]`: what the byte b adds with n bytes of zero behind it.
constexpr std::array<Table, stride> make_tables() {
  std::array<Table, stride> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? polynomial : 0);
    tables[0][byte] = sum;
  }
  for (std::size_t n = 1; n < stride; ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr std::array<Table, stride> tables = make_tables();

std::uint32_t byte_at(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(bytes[at]);
}

}  // namespace

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) noexcept {
  std::uint32_t sum = ~before;
  for (; bytes.size() >= stride; bytes.remove_prefix(stride)) {
    std::uint32_t next = 0;
    for (std::size_t at = 0; at < stride; ++at) {
      const std::uint32_t of_sum = at < 4 ? (sum >> (8 * at)) & 0xff : 0;
      next ^= tables[stride - 1 - at][byte_at(bytes, at) ^ of_sum];
    }
    sum = next;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    sum = (sum >> 8) ^ tables[0][(sum ^ byte_at(bytes, at)) & 0xff];
  }
  return ~sum;
}

}  // namespace idem::mysql
