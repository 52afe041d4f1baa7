#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "world.hpp"

namespace provider {

inline constexpr std::string_view usage =
    "usage: provider [--listen ADDRESS:PORT] [--quiet] [--deduplicate DURATION]\n"
    "                [--webhook-url http://HOST:PORT/PATH --webhook-secret-file FILE]\n"
    "                [--inbox-secret-file FILE]\n"
    "DURATION is 0 or a number with its unit: 500ms, 30s, 5m, 24h. A secret is whsec_ and 24 to "
    "64\n"
    "bytes in base64.";

struct Flags {
  std::string_view listen = "127.0.0.1:9000";
  bool quiet = false;
  std::chrono::milliseconds deduplicate{0};
  std::optional<Receiver> receiver{};
  std::optional<std::string> inbox_secret{};
};

/// None if a flag is unknown, lacks its value or has an invalid one, such as a file without a
/// secret. Prints to stderr which value is invalid.
std::optional<Flags> parse_flags(int count, char** arguments);

}  // namespace provider
