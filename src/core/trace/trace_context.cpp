#include "core/trace/trace_context.hpp"

#include <idem/record.hpp>

#include <algorithm>
#include <span>

namespace idem {
namespace {

constexpr std::size_t version_00_size = 55;

/// Upper case is invalid (§3.2.2).
std::optional<std::uint8_t> digit(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

bool read_hex(std::string_view text, std::span<std::uint8_t> out) noexcept {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto high = digit(text[2 * i]);
    const auto low = digit(text[2 * i + 1]);
    if (!high || !low) return false;
    out[i] = static_cast<std::uint8_t>(*high * 16 + *low);
  }
  return true;
}

bool is_zero(std::span<const std::uint8_t> bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view value) noexcept {
  if (value.size() < version_00_size) return std::nullopt;
  if (value[2] != '-' || value[35] != '-' || value[52] != '-') return std::nullopt;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  TraceContext context;
  const bool is_read =
      read_hex(value.substr(0, 2), version) && read_hex(value.substr(3, 32), context.trace.bytes) &&
      read_hex(value.substr(36, 16), context.span.bytes) && read_hex(value.substr(53, 2), flags);
  if (!is_read || version[0] == 0xff) return std::nullopt;
  if (is_zero(context.trace.bytes) || is_zero(context.span.bytes)) return std::nullopt;
  if (value.size() > version_00_size) {
    const bool may_be_longer = version[0] != 0 && value[version_00_size] == '-';
    if (!may_be_longer) return std::nullopt;
  }
  context.is_sampled = (flags[0] & 1) != 0;
  return context;
}

std::string traceparent_of(const TraceContext& context) {
  return "00-" + to_hex(context.trace.bytes) + "-" + to_hex(context.span.bytes) +
         (context.is_sampled ? "-01" : "-00");
}

bool is_among(const TraceId& trace, std::uint64_t one_in) noexcept {
  // Level 2 (§3.2.2.3) makes only these seven bytes random.
  std::uint64_t random = 0;
  for (std::size_t i = 9; i < trace.bytes.size(); ++i) random = random << 8 | trace.bytes[i];
  constexpr std::uint64_t all = std::uint64_t{1} << 56;
  return random < all / one_in;
}

}  // namespace idem
