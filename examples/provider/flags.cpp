#include "flags.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>

#include "standard_webhook.hpp"
#include "webhooks.hpp"

namespace provider {
namespace {

std::optional<std::chrono::milliseconds> unit_named(std::string_view name) {
  if (name == "ms") return std::chrono::milliseconds(1);
  if (name == "s") return std::chrono::seconds(1);
  if (name == "m") return std::chrono::minutes(1);
  if (name == "h") return std::chrono::hours(1);
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr std::chrono::milliseconds longest = std::chrono::years(10);  // The clock can add it.
  if (text == "0") return std::chrono::milliseconds(0);
  long count = 0;
  const auto [name, error] = std::from_chars(text.begin(), text.end(), count);
  const auto unit = unit_named(std::string_view(name, text.end()));
  if (error != std::errc{} || !unit || count < 0 || count > longest / *unit) return std::nullopt;
  return count * *unit;
}

std::optional<std::string> read_secret(const std::string& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return webhook_secret(text);
}

/// Whether `value` is valid for the flag; none if the flag is unknown.
std::optional<bool> read_value(Flags& flags, std::string_view flag, const std::string& value,
                               std::string& receiver_secret) {
  if (flag == "--deduplicate") {
    const auto window = parse_duration(value);
    flags.deduplicate = window.value_or(std::chrono::milliseconds(0));
    return window.has_value();
  }
  if (flag == "--webhook-url") return (flags.receiver = parse_receiver(value)).has_value();
  if (flag == "--inbox-secret-file") return (flags.inbox_secret = read_secret(value)).has_value();
  if (flag != "--webhook-secret-file") return std::nullopt;
  receiver_secret = read_secret(value).value_or("");
  return !receiver_secret.empty();
}

}  // namespace

std::optional<Flags> parse_flags(int count, char** arguments) {
  Flags flags;
  std::string receiver_secret;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word == "--quiet") {
      flags.quiet = true;
    } else if (word == "--listen" && i + 1 < count) {
      flags.listen = arguments[++i];
    } else if (i + 1 < count) {
      const auto good = read_value(flags, word, arguments[++i], receiver_secret);
      if (good && !*good) fmt::print(stderr, "provider: {} cannot be {}\n", word, arguments[i]);
      if (!good.value_or(false)) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (flags.receiver.has_value() == receiver_secret.empty()) return std::nullopt;
  if (flags.receiver) flags.receiver->secret = std::move(receiver_secret);
  return flags;
}

}  // namespace provider
