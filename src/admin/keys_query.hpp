#pragma once

#include "core/json/scalars.hpp"

#include <idem/limits.hpp>
#include <idem/store.hpp>

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::admin {

/// What `GET /v1/keys?...` asks for.
struct KeysQuery {
  List list{.limit = limits::list_page_default};
  /// A record's key, as the client sent it and decoded; never to be shown anywhere.
  std::optional<std::string> key;
  /// Instead of a moment; the store's clock decides from when.
  std::optional<Millis> older_than;
  /// Likewise, and a moment: what was made before is left out of the page.
  std::optional<Millis> newer_than;
  std::optional<StoreTime> created_from;
  /// Of each record's stored body, by what a listing calls them.
  std::vector<std::pair<std::string, JsonPointer>> values;
};

using ParseDuration = std::function<std::expected<Millis, std::string>(const std::string&)>;

/// Reads a query string (application/x-www-form-urlencoded). The error names the parameter and says
/// what to write; it never repeats a value, which may be a key.
std::expected<KeysQuery, std::string> parse_keys_query(std::string_view query,
                                                       const ParseDuration& parse_duration);

/// "in_progress", ...
std::optional<State> parse_state(std::string_view name);

}  // namespace idem::admin
