#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace idem::test {

/// `content` as a client compresses it that writes the moment into the header (RFC 1952 §2.3.1).
/// `window` as zlib's deflateInit2() takes it: 15 for `deflate`, -15 for that without its header.
inline std::string gzipped(std::string_view content, std::uint32_t moment = 0,
                           int window = 15 + 16) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return {};
  }
  std::string encoded(deflateBound(&stream, content.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(encoded.data());
  stream.avail_out = static_cast<uInt>(encoded.size());
  const bool is_whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  encoded.resize(is_whole ? stream.total_out : 0);
  deflateEnd(&stream);
  if (is_whole && window > 15) {
    for (int i = 0; i < 4; ++i) encoded[4 + i] = static_cast<char>(moment >> (8 * i));
  }
  return encoded;
}

}  // namespace idem::test
