#pragma once

#include <cstdint>
#include <string_view>

namespace idem::mysql {

/// The function CRC32() of the servers: the polynomial of IEEE 802.3, as zlib has it.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0) noexcept;

}  // namespace idem::mysql
