#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace provider {

/// How an answer that charges leaves the wire.
enum class Wire { whole, chunked, until_close, truncated, truncated_chunked, garbage, dropped };

/// The faults of one request; README.md lists the spellings.
struct Faults {
  std::string gate_before;  ///< Hold before charging.
  std::chrono::milliseconds slow{0};
  bool drop_before = false;
  int refuse = 0;  ///< Answer this status without charging.
  bool interim = false;
  std::chrono::milliseconds slow_after{0};
  std::string hold;  ///< Hold after charging, before the answer.
  int status = 0;
  Wire wire = Wire::whole;
  bool close = false;
  std::optional<std::size_t> size;
  std::vector<std::pair<std::string, std::string>> headers;
  bool lose_webhook = false;
  bool repeat_webhook = false;
  bool early_webhook = false;
  std::chrono::milliseconds late_webhook{0};
};

/// Parses a comma-separated list of faults. None if a fault is unknown: a misspelt one would make a
/// test pass for the wrong reason.
std::optional<Faults> parse_faults(std::string_view list);

/// The value of `name` in the query of `target`, percent-decoded; empty when it is not there.
std::string query_value(std::string_view target, std::string_view name);

}  // namespace provider
