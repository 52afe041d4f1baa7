#include "support/http_message.hpp"

#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <charconv>

namespace idem::test {

bool same_name(std::string_view a, std::string_view b) { return equal_names(a, b); }

std::optional<std::string> find_field(const std::vector<Field>& fields, std::string_view name) {
  for (const auto& field : fields) {
    if (same_name(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::size_t count_fields(const std::vector<Field>& fields, std::string_view name) {
  return static_cast<std::size_t>(std::count_if(
      fields.begin(), fields.end(), [&](const Field& f) { return same_name(f.name, name); }));
}

std::optional<Head> parse_head(std::string_view bytes) {
  const auto end = bytes.find("\r\n\r\n");
  if (end == bytes.npos) return std::nullopt;
  Head head;
  head.bytes = end + 4;
  auto rest = bytes.substr(0, end + 2);
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    if (head.start_line.empty()) {
      head.start_line = line;
      continue;
    }
    const auto colon = line.find(':');
    const auto name = line.substr(0, colon);
    const auto value = colon == line.npos ? std::string_view{} : trimmed(line.substr(colon + 1));
    head.fields.push_back({std::string(name), std::string(value)});
  }
  return head;
}

std::optional<Body> parse_chunked(std::string_view bytes) {
  Body body;
  for (;;) {
    const auto line = bytes.substr(body.bytes, bytes.find("\r\n", body.bytes) - body.bytes);
    if (body.bytes + line.size() + 2 > bytes.size()) return std::nullopt;
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
    if (error != std::errc{}) return std::nullopt;
    body.bytes += line.size() + 2;
    if (size == 0) break;
    if (size > bytes.size() - body.bytes || bytes.size() - body.bytes - size < 2) {
      return std::nullopt;
    }
    body.content += bytes.substr(body.bytes, size);
    body.bytes += size + 2;
  }
  for (;;) {  // Trailers, up to the empty line.
    const auto end = bytes.find("\r\n", body.bytes);
    if (end == bytes.npos) return std::nullopt;
    const bool last = end == body.bytes;
    body.bytes = end + 2;
    if (last) return body;
  }
}

std::string RequestMessage::method() const {
  return head.start_line.substr(0, head.start_line.find(' '));
}

std::string RequestMessage::target() const {
  const auto first = head.start_line.find(' ');
  if (first == std::string::npos) return {};
  return head.start_line.substr(first + 1, head.start_line.rfind(' ') - first - 1);
}

std::optional<RequestMessage> parse_request(std::string_view bytes) {
  auto head = parse_head(bytes);
  if (!head) return std::nullopt;
  RequestMessage message{.head = *head, .body = {}, .bytes = head->bytes};
  const auto rest = bytes.substr(head->bytes);
  if (find_field(head->fields, "Transfer-Encoding")) {
    const auto body = parse_chunked(rest);
    if (!body) return std::nullopt;
    message.body = body->content;
    message.bytes += body->bytes;
  } else if (const auto length = find_field(head->fields, "Content-Length")) {
    std::size_t size = 0;
    std::from_chars(length->data(), length->data() + length->size(), size);
    if (rest.size() < size) return std::nullopt;
    message.body = rest.substr(0, size);
    message.bytes += size;
  }
  return message;
}

}  // namespace idem::test
