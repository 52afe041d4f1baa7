#pragma once

#include "http/head.hpp"

#include <cstdint>
#include <string_view>

/// The parts that request heads, response heads and trailers share: lines, field lines, and when an
/// incomplete head is worth another look.
namespace idem::http {

/// Reading goes strictly from left to right and every refusal depends only on the bytes up to it.
/// So a head that came in pieces is judged exactly like one that came whole.
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

/// Reads up to the CRLF that ends the line and goes past it; `text` is what was before it. Any
/// other control byte, a CR without LF and an LF without CR are refused (RFC 9112 §2.2).
Reading read_line_rest(LineReader& reader, std::string_view& text);

/// Reads one field line, or the empty line that ends the section. Blanks before the colon are
/// refused in requests and stripped in responses (RFC 9112 §5.1); folded lines are refused in both.
Reading read_field_line(LineReader& reader, Side side, FieldView& field);

/// The field of that name which the gateway looks at, whatever the case.
FieldName known_field(std::string_view name) noexcept;

/// True for a name that is a framing field to whoever maps, drops or unescapes its non-letters
/// (P11), such as `Transfer_Encoding`. The exact names are for the caller to except.
bool looks_like_framing(std::string_view name) noexcept;
/// A `%` and two hexadecimal digits.
bool has_escape(std::string_view name) noexcept;

/// True when the bytes after `scanned` cannot have changed the answer "more bytes are needed".
bool still_incomplete(std::string_view buffer, std::size_t scanned) noexcept;

}  // namespace idem::http
