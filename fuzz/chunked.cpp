// The chunked coding. Pieces change neither data nor verdict; a body is finished exactly when a
// second decoder, which reads whole lines of a whole body, says so, with the same data and end;
// what append_chunk() writes is read back.
#include "http/chunked.hpp"
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace idem::fuzz {
namespace {

struct Body {
  std::string data;
  std::size_t bytes = 0;  ///< On the wire.
  bool finished = false;
  int status = 0;  ///< Of the refusal; 0 where there was none.
  bool operator==(const Body&) const = default;
};

Body decode(std::string_view input, auto next_piece) {
  Body body;
  http::ChunkDecoder decoder;
  while (body.bytes < input.size() && !body.finished) {
    const auto rest = input.substr(body.bytes);
    const ExactBytes piece(rest.substr(0, next_piece(rest.size())));
    const auto step = decoder.feed(piece.view());
    if (!step) {
      check(!decoder.feed("0\r\n\r\n"), "a refusal stays");
      body.status = step.error().status;
      // How far it read then depends on the pieces and means nothing.
      body.bytes = 0;
      return body;
    }
    check(step->consumed > 0 || step->finished, "each call goes on");
    check(step->consumed <= piece.view().size(), "no more is consumed than was given");
    check(step->data.size() <= step->consumed, "data is of what was consumed");
    body.data += step->data;
    body.bytes += step->consumed;
    body.finished = step->finished;
  }
  return body;
}

bool is_token_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").contains(c);
}
bool is_text(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7F'); }
void drop_token(std::string_view& text) {
  text.remove_prefix(
      static_cast<std::size_t>(std::ranges::find_if_not(text, is_token_char) - text.begin()));
}

/// The line at the start of `rest`, which then begins behind its CRLF.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const auto end = rest.find("\r\n");
  if (end == rest.npos) return {};
  const auto line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return line;
}

/// `;name`, `;name=token` or `;name="quoted"`, blanks behind the semicolon only.
bool are_extensions(std::string_view text) {
  while (!text.empty()) {
    if (text[0] != ';') return false;
    text.remove_prefix(std::min(text.find_first_not_of(" \t", 1), text.size()));
    if (text.empty() || !is_token_char(text[0])) return false;
    drop_token(text);
    if (!text.starts_with('=')) continue;
    text.remove_prefix(1);
    if (text.empty() || (text[0] != '"' && !is_token_char(text[0]))) return false;
    if (text[0] != '"') {
      drop_token(text);
      continue;
    }
    std::size_t at = 1;
    while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    if (at >= text.size() || !std::ranges::all_of(text.substr(0, at), is_text)) return false;
    text.remove_prefix(at + 1);
  }
  return true;
}

std::optional<std::uint64_t> size_of(std::string_view line) {
  constexpr std::string_view hex = "0123456789abcdefABCDEF";
  if (line.size() > limits::chunk_line_bytes_max) return {};
  const auto digits = line.substr(0, line.find_first_not_of(hex));
  if (digits.empty() || digits.size() > 16 || !are_extensions(line.substr(digits.size())))
    return {};
  const std::uint64_t size = std::stoull(std::string(digits), nullptr, 16);
  return size >> 63 == 0 ? std::optional(size) : std::nullopt;
}

bool is_field_line(std::string_view line) {
  const auto name = line.substr(0, line.find(':'));
  return name.size() < line.size() && !name.empty() && std::ranges::all_of(name, is_token_char) &&
         std::ranges::all_of(line.substr(name.size()), is_text);
}

/// The second decoder: a whole body at the start of `input`, or nothing.
std::optional<Body> whole_body(std::string_view input) {
  Body body;
  std::string_view rest = input;
  while (true) {
    const auto line = take_line(rest);
    const auto size = line ? size_of(*line) : std::nullopt;
    if (!size) return {};
    if (*size == 0) break;
    if (rest.size() < 2 || *size > rest.size() - 2 || rest.substr(*size, 2) != "\r\n") return {};
    body.data += rest.substr(0, *size);
    rest.remove_prefix(*size + 2);
  }
  const std::size_t before_trailer = rest.size();
  for (auto line = take_line(rest);; line = take_line(rest)) {
    if (!line) return {};
    if (line->empty()) break;
    if (!is_field_line(*line)) return {};
  }
  if (before_trailer - rest.size() > limits::trailer_bytes_max) return {};
  body.bytes = input.size() - rest.size();
  body.finished = true;
  return body;
}

void check_round_trip(std::string_view data) {
  std::string encoded;
  Pieces pieces(data);
  for (std::size_t at = 0; at < data.size();) {
    const auto size = pieces.piece(data.size() - at);
    http::append_chunk(encoded, data.substr(at, size));
    at += size;
  }
  http::append_chunk(encoded, {});
  encoded += http::last_chunk;
  const Body body = decode(encoded, [&](std::size_t left) { return pieces.piece(left); });
  check(body == Body{std::string(data), encoded.size(), true, 0}, "what is encoded is decoded");
}

}  // namespace

void chunked(std::string_view input) {
  const std::string expanded = with_runs(input);
  const Body whole = decode(expanded, [](std::size_t left) { return left; });
  Pieces pieces(expanded);
  check(whole == decode(expanded, [&](std::size_t left) { return pieces.piece(left); }),
        "pieces change nothing");
  const auto second = whole_body(expanded);
  check(second.has_value() == whole.finished, "a second decoder finishes the same bodies");
  if (second) check(*second == whole, "a second decoder reads the same");
  check_round_trip(expanded);
}

}  // namespace idem::fuzz
