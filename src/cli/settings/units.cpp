#include "cli/settings/units.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace idem::cli {
namespace {

struct UnitFactor {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<UnitFactor, 5> duration_units{
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr std::array<UnitFactor, 4> size_units{
    {{"B", 1}, {"KiB", 1024}, {"MiB", 1024UL * 1024}, {"GiB", 1024UL * 1024 * 1024}}};

// A hundred years in milliseconds: beyond it, sums with clock values could overflow.
constexpr std::uint64_t value_max = 3'153'600'000'000;

template <std::size_t N>
std::optional<std::uint64_t> parse(const std::string& text,
                                   const std::array<UnitFactor, N>& units) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr == text.data()) return std::nullopt;
  const std::string_view unit(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  for (const auto& known : units) {
    if (known.name != unit) continue;
    if (number > value_max / known.factor) return std::nullopt;
    return number * known.factor;
  }
  return std::nullopt;
}

}  // namespace

std::expected<Millis, std::string> parse_duration(const std::string& text) {
  if (text == "0") return Millis(0);
  const auto value = parse(text, duration_units);
  if (!value)
    return std::unexpected("\"" + text + "\" is no duration; write 150ms, 30s, 5m, 24h or 30d");
  return Millis(static_cast<std::int64_t>(*value));
}

std::expected<std::size_t, std::string> parse_size(const std::string& text) {
  if (text == "0") return 0;
  const auto value = parse(text, size_units);
  if (!value) return std::unexpected("\"" + text + "\" is no size; write 512B, 64KiB or 1MiB");
  return static_cast<std::size_t>(*value);
}

}  // namespace idem::cli
