#include "coding/decoded.hpp"

#include <brotli/decode.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

namespace idem {
namespace {

using Content = std::expected<std::string, NotDecoded>;

constexpr std::size_t block_bytes = 16UL * 1024;
// For zlib: 32 KiB of window, and the gzip format instead of its own.
constexpr int zlib_window = 15;
constexpr int gzip_format = 16;

bool add(std::string& content, const std::uint8_t* bytes, std::size_t size, std::size_t most) {
  if (size > most - content.size()) return false;
  content.append(reinterpret_cast<const char*>(bytes), size);
  return true;
}

// A body is far smaller than 4 GiB (limits::request_body_bytes_cap), which zlib counts in 32 bits.
Content inflated(std::string_view body, int window, std::size_t most) {
  if (body.size() > std::numeric_limits<uInt>::max()) {
    return std::unexpected(NotDecoded::too_large);
  }
  z_stream stream{};
  if (inflateInit2(&stream, window) != Z_OK) return std::unexpected(NotDecoded::malformed);
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> ending(&stream, &inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  std::array<std::uint8_t, block_bytes> block;
  std::string content;
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (!add(content, block.data(), block.size() - stream.avail_out, most)) {
      return std::unexpected(NotDecoded::too_large);
    }
  }
  // Without more input, or with a dictionary that it lacks, zlib stops in another state.
  if (state != Z_STREAM_END || stream.avail_in != 0) {
    return std::unexpected(NotDecoded::malformed);
  }
  return content;
}

Content from_brotli(std::string_view body, std::size_t most) {
  const std::unique_ptr<BrotliDecoderState, decltype(&BrotliDecoderDestroyInstance)> state(
      BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), &BrotliDecoderDestroyInstance);
  if (!state) return std::unexpected(NotDecoded::malformed);
  const auto* next_in = reinterpret_cast<const std::uint8_t*>(body.data());
  std::size_t left = body.size();
  std::array<std::uint8_t, block_bytes> block;
  std::string content;
  auto result = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
  while (result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) {
    std::uint8_t* next_out = block.data();
    std::size_t room = block.size();
    result = BrotliDecoderDecompressStream(state.get(), &left, &next_in, &room, &next_out, nullptr);
    if (!add(content, block.data(), block.size() - room, most)) {
      return std::unexpected(NotDecoded::too_large);
    }
  }
  if (result != BROTLI_DECODER_RESULT_SUCCESS || left != 0) {
    return std::unexpected(NotDecoded::malformed);
  }
  return content;
}

}  // namespace

std::optional<Coding> coding_of(std::string_view name) noexcept {
  if (name == "gzip" || name == "x-gzip") return Coding::gzip;
  if (name == "deflate") return Coding::deflate;
  if (name == "br") return Coding::br;
  return std::nullopt;
}

std::expected<std::string, NotDecoded> decoded(Coding coding, std::string_view body,
                                               std::size_t bytes_max) {
  switch (coding) {
    case Coding::gzip:
      return inflated(body, zlib_window + gzip_format, bytes_max);
    case Coding::deflate:
      return inflated(body, zlib_window, bytes_max);
    case Coding::br:
      return from_brotli(body, bytes_max);
  }
  return std::unexpected(NotDecoded::malformed);
}

}  // namespace idem
