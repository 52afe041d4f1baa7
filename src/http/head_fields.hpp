#pragma once

#include "http/head.hpp"
#include "idem/limits.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// The parts that request heads, response heads and trailers share: lines, field lines, and whether
/// an incomplete head has to be read again.
namespace idem::http {

/// The readers go strictly from left to right, and every refusal depends only on the bytes up to
/// it. So a head that came in pieces has the same result as one that came whole.
enum class Reading : std::uint8_t { done, end_of_fields, more, refused };

struct LineReader {
  const char* at;
  const char* end;
  Refusal refusal{};

  Reading refuse(int status, std::string_view detail) noexcept {
    refusal = {status, detail};
    return Reading::refused;
  }
};

enum class Side : std::uint8_t { request, response };

/// Reads up to the CRLF that ends the line and goes past it; `text` is the line without it. Any
/// other control byte, a CR without LF and an LF without CR are refused (RFC 9112 §2.2).
Reading read_line_rest(LineReader& reader, std::string_view& text);

/// Reads one field line, or the empty line that ends the section. Blanks before the colon are
/// refused in requests and stripped in responses (RFC 9112 §5.1); folded lines are refused in both.
Reading read_field_line(LineReader& reader, Side side, FieldView& field);

/// Reads field lines into `fields` until the empty line, which it answers with `end_of_fields`.
/// `judge(field)` checks each one; anything but `done` ends the reading. `too_many`: the refusal of
/// more than limits::head_fields_max lines.
template <class Judge>
Reading read_fields(LineReader& reader, Side side, const Refusal& too_many,
                    std::vector<FieldView>& fields, Judge judge) {
  while (true) {
    // Written in its place: a copy of what was just written stalls, once per field.
    FieldView& field = fields.emplace_back();
    Reading reading = read_field_line(reader, side, field);
    if (reading != Reading::done) {
      fields.pop_back();
      return reading;
    }
    if (fields.size() > limits::head_fields_max) {
      return reader.refuse(too_many.status, too_many.detail);
    }
    reading = judge(field);
    if (reading != Reading::done) return reading;
  }
}

/// What the parsers answer for a head that begins at `begin` and was read up to `reader.at`.
/// `too_long`: the refusal of a head that needs more than limits::head_bytes_max.
HeadResult head_result(Reading reading, const LineReader& reader, const char* begin,
                       const Refusal& too_long);

/// The field of that name which the gateway looks at, whatever the case.
FieldName known_field(std::string_view name) noexcept;

/// True for a name that a server reads as a framing field when it maps, drops or unescapes its
/// non-letters (P11), such as `Transfer_Encoding`. The caller has to except the exact names.
bool looks_like_framing(std::string_view name) noexcept;
/// A `%` and two hexadecimal digits.
bool has_escape(std::string_view name) noexcept;

/// True when the bytes after `scanned` cannot have changed the answer "more bytes are needed".
bool still_incomplete(std::string_view buffer, std::size_t scanned) noexcept;

/// One attempt to parse a head, whole or not: `Reader` has clear(), which empties the head that it
/// fills, and read().
template <class Reader>
HeadResult parse_head(std::string_view buffer, std::size_t& scanned, Reader reader) {
  if (still_incomplete(buffer, scanned)) {
    scanned = buffer.size();
    return std::optional<std::size_t>{};
  }
  reader.clear();
  HeadResult result = reader.read();
  const bool complete = result && *result;
  scanned = complete ? 0 : buffer.size();
  // Nothing of a head that is refused or cut off may be mistaken for a message.
  if (!complete) reader.clear();
  return result;
}

}  // namespace idem::http
