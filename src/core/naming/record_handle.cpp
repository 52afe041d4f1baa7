#include "core/naming/record_handle.hpp"

namespace idem {

std::optional<RecordId> parse_handle(std::string_view text) noexcept {
  static constexpr std::string_view digits = "0123456789abcdef";
  RecordId id;
  if (text.size() != id.bytes.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto value = digits.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    auto& byte = id.bytes[i / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
  }
  return id;
}

}  // namespace idem
