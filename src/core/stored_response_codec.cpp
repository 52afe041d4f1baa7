#include "core/stored_response_codec.hpp"

#include <optional>

namespace idem {
namespace {

constexpr std::size_t length_bytes = 4;

void append_framed(std::string& out, std::string_view text) {
  auto length = static_cast<std::uint32_t>(text.size());
  for (std::size_t i = 0; i < length_bytes; ++i, length >>= 8) {
    out += static_cast<char>(length & 0xff);
  }
  out += text;
}

std::optional<std::string_view> take_framed(std::string_view& rest) {
  if (rest.size() < length_bytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(rest[i]);
  }
  rest.remove_prefix(length_bytes);
  if (length > rest.size()) return std::nullopt;
  const std::string_view text = rest.substr(0, length);
  rest.remove_prefix(length);
  return text;
}

}  // namespace

std::string encode_fields(const std::vector<Field>& fields) {
  std::size_t size = 1;
  for (const Field& field : fields) {
    size += 2 * length_bytes + field.name.size() + field.value.size();
  }
  std::string out;
  out.reserve(size);
  out += static_cast<char>(stored_fields_version);
  for (const Field& field : fields) {
    append_framed(out, field.name);
    append_framed(out, field.value);
  }
  return out;
}

std::expected<std::vector<Field>, std::string_view> decode_fields(std::string_view bytes) {
  if (bytes.empty()) return std::unexpected("no bytes");
  if (static_cast<std::uint8_t>(bytes.front()) != stored_fields_version) {
    return std::unexpected("unknown schema version");
  }
  bytes.remove_prefix(1);
  std::vector<Field> fields;
  while (!bytes.empty()) {
    const auto name = take_framed(bytes);
    const auto value = name ? take_framed(bytes) : std::nullopt;
    if (!value) return std::unexpected("cut short");
    fields.emplace_back(std::string(*name), std::string(*value));
  }
  return fields;
}

}  // namespace idem
