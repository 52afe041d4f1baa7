#pragma once

#include "http/head.hpp"

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace idem::http {

/// Decoder of the chunked transfer coding (RFC 9112 §7.1). Input may come in any pieces. It is
/// strict about CRLF, with bounds on chunk size (no overflow), extension length and trailer length.
/// Trailer fields are checked and dropped (P13): they never join the headers.
class ChunkDecoder {
 public:
  struct Step {
    std::size_t consumed = 0;  ///< Bytes of the input that were decoded.
    std::string_view data;     ///< Body bytes, a view into the input; may be empty.
    bool finished = false;     ///< The last chunk and the trailer section were read.
  };
  /// Reads on in `input` until it has some data, the end, or no more input. Call again with the
  /// rest while consumed > 0. After a refusal or the end the decoder must be reset; until then it
  /// repeats them. The status is 400 (431 for the trailer's limit); for a response the caller's is
  /// 502.
  std::expected<Step, Refusal> feed(std::string_view input);
  void reset() { *this = ChunkDecoder(); }

 private:
  enum class Place : std::uint8_t {
    size,
    size_digits,
    extension_start,
    extension_name,
    extension_value,
    extension_token,
    extension_quoted,
    extension_escape,
    extension_end,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer,
    finished,
    refused,
  };

  void decode(char c);
  void decode_size(char c);
  void decode_extension(char c);
  void decode_trailer(char c);
  void end_item(char c, std::string_view otherwise);
  void refuse(std::string_view detail, int status = 400);

  Place place_ = Place::size;
  std::uint64_t left_ = 0;
  std::size_t line_bytes_ = 0;
  std::size_t trailer_bytes_ = 0;
  std::string trailer_line_;
  Refusal refusal_{};
};

/// Appends one chunk (size line, data, CRLF). Empty data appends nothing.
void append_chunk(std::string& out, std::string_view data);
/// The last chunk with no trailer section.
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

}  // namespace idem::http
