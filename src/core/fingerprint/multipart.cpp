#include "core/fingerprint/multipart.hpp"

#include "core/fingerprint/media_type.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace idem {
namespace {

struct FormPart {
  std::string_view headers;  // without the empty line's end
  std::string_view content;
};

struct Multipart {
  std::string_view preamble;  // with the end of its last line
  std::vector<FormPart> parts;
  std::string_view tail;  // the end of the last delimiter's line and what follows; may be empty
};

// RFC 2046 §5.1.1: bchars, the last of them no space.
bool is_boundary(std::string_view text) noexcept {
  static constexpr std::string_view others = "'()+_,-./:=? ";
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != others.npos;
  };
  return !text.empty() && text.size() <= 70 && text.back() != ' ' &&
         std::ranges::all_of(text, fits);
}

// `text`: from the end of a delimiter to the line's end before the next one.
std::optional<FormPart> part_of(std::string_view text) noexcept {
  if (text.starts_with("\r\n\r\n")) return FormPart{{}, text.substr(4)};
  const auto end = text.find("\r\n\r\n");
  if (end == text.npos) return std::nullopt;
  return FormPart{text.substr(2, end - 2), text.substr(end + 4)};
}

std::optional<Multipart> read_multipart(std::string_view body, const std::string& delimiter) {
  Multipart read;
  const auto first = body.find(delimiter);
  if (first == body.npos) return std::nullopt;
  read.preamble = body.substr(0, first);
  if (first > 0 && !read.preamble.ends_with("\r\n")) return std::nullopt;
  body.remove_prefix(first + delimiter.size());
  while (body.starts_with("\r\n")) {
    if (read.parts.size() == limits::multipart_parts_max) return std::nullopt;
    const auto next = body.find(delimiter);
    // Needs the end of this delimiter's line, and another line's end before the next delimiter.
    if (next == body.npos || next < 4 || body.substr(next - 2, 2) != "\r\n") return std::nullopt;
    const auto part = part_of(body.substr(0, next - 2));
    if (!part) return std::nullopt;
    read.parts.push_back(*part);
    body.remove_prefix(next + delimiter.size());
  }
  if (!body.starts_with("--")) return std::nullopt;
  read.tail = body.substr(2);
  const bool ends = read.tail.empty() || read.tail.starts_with("\r\n");
  if (!ends || read.tail.find(delimiter) != read.tail.npos) return std::nullopt;
  return read;
}

}  // namespace

std::optional<Digest> multipart_digest(std::string_view content_type, std::string_view body) {
  const auto parameters = media_parameters(content_type);
  if (!parameters) return std::nullopt;
  const auto is_the_boundary = [](const MediaParameter& p) { return p.name == "boundary"; };
  const auto boundary = std::ranges::find_if(*parameters, is_the_boundary);
  if (std::ranges::count_if(*parameters, is_the_boundary) != 1 || !is_boundary(boundary->value)) {
    return std::nullopt;
  }
  const auto read = read_multipart(body, "--" + boundary->value);
  if (!read) return std::nullopt;

  FramedDigest digest;
  digest.add_number(parameters->size() - 1);
  for (const MediaParameter& parameter : *parameters) {
    if (is_the_boundary(parameter)) continue;
    digest.add(parameter.name);
    digest.add(parameter.value);
  }
  digest.add_number(read->parts.size());
  for (const FormPart& part : read->parts) {
    digest.add(part.headers);
    digest.add(part.content);
  }
  digest.add(read->tail);
  // Older digests did not cover a preamble: they stay as they are for bodies without one.
  if (!read->preamble.empty()) digest.add(read->preamble);
  return digest.finish();
}

}  // namespace idem
