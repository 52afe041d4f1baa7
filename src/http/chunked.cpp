#include "http/chunked.hpp"

#include "core/bytes/ascii.hpp"
#include "http/characters.hpp"
#include "http/head_fields.hpp"
#include "idem/limits.hpp"

#include <algorithm>
#include <charconv>

namespace idem::http {
namespace {

constexpr int size_digits_max = 16;
constexpr std::uint64_t size_max = (std::uint64_t{1} << 63) - 1;

}  // namespace

std::expected<ChunkDecoder::Step, Refusal> ChunkDecoder::feed(std::string_view input) {
  Step step;
  while (place_ != Place::finished && place_ != Place::refused) {
    if (step.consumed == input.size()) return step;
    if (place_ == Place::data) {
      const auto rest = input.substr(step.consumed);
      step.data =
          rest.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, rest.size())));
      step.consumed += step.data.size();
      left_ -= step.data.size();
      if (left_ == 0) place_ = Place::data_cr;
      return step;
    }
    decode(input[step.consumed++]);
  }
  // A refusal stays: behind it the frames of the stream are lost.
  if (place_ == Place::refused) return std::unexpected(refusal_);
  step.finished = true;
  return step;
}

void ChunkDecoder::decode(char c) {
  switch (place_) {
    case Place::size:
    case Place::size_digits:
      return decode_size(c);
    case Place::extension_start:
    case Place::extension_name:
    case Place::extension_value:
    case Place::extension_token:
    case Place::extension_quoted:
    case Place::extension_escape:
    case Place::extension_end:
      return decode_extension(c);
    case Place::size_lf:
      if (c != '\n') return refuse("a chunk size line ends with CR alone (RFC 9112 7.1)");
      place_ = left_ != 0 ? Place::data : Place::trailer;
      return;
    case Place::data_cr:
      if (c != '\r') return refuse("chunk data does not end with CRLF (RFC 9112 7.1)");
      place_ = Place::data_lf;
      return;
    case Place::data_lf:
      if (c != '\n') return refuse("chunk data does not end with CRLF (RFC 9112 7.1)");
      place_ = Place::size;
      return;
    case Place::trailer:
      return decode_trailer(c);
    case Place::data:
    case Place::finished:
    case Place::refused:
      return;
  }
}

void ChunkDecoder::decode_size(char c) {
  if (is_char(c, char_hex)) {
    if (place_ == Place::size) {
      left_ = 0;
      line_bytes_ = 0;
      place_ = Place::size_digits;
    }
    if (++line_bytes_ > size_digits_max || left_ > (size_max >> 4)) {
      return refuse("a chunk size that is too long (RFC 9112 7.1)");
    }
    left_ = left_ << 4 | static_cast<unsigned>(hex_value(c));
    return;
  }
  if (place_ == Place::size) return refuse("a chunk size is not hexadecimal (RFC 9112 7.1)");
  end_item(c, "a chunk size is not hexadecimal (RFC 9112 7.1)");
}

/// chunk-ext of RFC 9112 §7.1.1, but no blank anywhere but after a semicolon: the grammar has it
/// only as BWS, which no client sends and about which parsers differ.
void ChunkDecoder::decode_extension(char c) {
  constexpr std::string_view malformed = "a chunk extension is malformed (RFC 9112 7.1.1)";
  if (++line_bytes_ > limits::chunk_line_bytes_max && c != '\r') {
    return refuse("a chunk size line is longer than 256 bytes");
  }
  const bool token = is_char(c, char_token);
  switch (place_) {
    case Place::extension_start:
      if (is_blank(c)) return;
      if (!token) return refuse(malformed);
      place_ = Place::extension_name;
      return;
    case Place::extension_name:
      if (token) return;
      if (c != '=') return end_item(c, malformed);
      place_ = Place::extension_value;
      return;
    case Place::extension_value:
      if (!token && c != '"') return refuse(malformed);
      place_ = token ? Place::extension_token : Place::extension_quoted;
      return;
    case Place::extension_token:
      if (!token) end_item(c, malformed);
      return;
    case Place::extension_quoted:
      if (is_char(c, char_control)) return refuse(malformed);
      if (c == '\\') place_ = Place::extension_escape;
      if (c == '"') place_ = Place::extension_end;
      return;
    case Place::extension_escape:
      if (is_char(c, char_control)) return refuse(malformed);
      place_ = Place::extension_quoted;
      return;
    case Place::extension_end:
      return end_item(c, malformed);
    case Place::size:
    case Place::size_digits:
    case Place::size_lf:
    case Place::data:
    case Place::data_cr:
    case Place::data_lf:
    case Place::trailer:
    case Place::finished:
    case Place::refused:
      return;
  }
}

void ChunkDecoder::end_item(char c, std::string_view otherwise) {
  if (c == '\r') {
    place_ = Place::size_lf;
  } else if (c == ';') {
    // Counts itself after a size; after an extension it was counted already.
    if (place_ == Place::size_digits) ++line_bytes_;
    place_ = Place::extension_start;
  } else {
    refuse(otherwise);
  }
}

/// Trailer fields obey the rules of header fields and are then forgotten, the forbidden ones with
/// the others (P13; RFC 9112 §7.1.2 lets a recipient discard them).
void ChunkDecoder::decode_trailer(char c) {
  if (++trailer_bytes_ > limits::trailer_bytes_max) {
    return refuse("the trailer section is longer than 8 KiB", 431);
  }
  trailer_line_.push_back(c);
  if (!is_char(c, char_control) &&
      (trailer_line_.size() < 2 || trailer_line_.rbegin()[1] != '\r')) {
    return;
  }
  LineReader reader{trailer_line_.data(), trailer_line_.data() + trailer_line_.size()};
  FieldView field;
  switch (read_field_line(reader, Side::request, field)) {
    case Reading::refused:
      return refuse(reader.refusal.detail, reader.refusal.status);
    case Reading::more:
      return;
    case Reading::done:
      trailer_line_.clear();
      return;
    case Reading::end_of_fields:
      place_ = Place::finished;
      return;
  }
}

void ChunkDecoder::refuse(std::string_view detail, int status) {
  refusal_ = {status, detail};
  place_ = Place::refused;
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  char size[size_digits_max];
  const auto written = std::to_chars(size, size + size_digits_max, data.size(), 16);
  out.append(size, written.ptr);
  out.append("\r\n");
  out.append(data);
  out.append("\r\n");
}

}  // namespace idem::http
