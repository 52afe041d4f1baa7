#pragma once

#include "core/naming/former_names.hpp"

#include <idem/route_name.hpp>

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// A table of route names, parsed; its last entry has no name and matches all other requests.
class RouteNaming {
 public:
  /// The error is a sentence: an invalid pattern or `formerly` entry, a name that looks like
  /// "METHOD /path" (a record of one would be found as the other's), a name with a control
  /// character or more than limits::operation_bytes_max bytes, too many routes.
  static std::expected<RouteNaming, std::string> parse(const std::vector<RouteName>& routes);

  /// Why under `to` a retry might not find a record that `from` stored or found under `operation`,
  /// and so run again; none: every retry finds it. Compares patterns, so it may refuse a table that
  /// would hide no record; it never accepts one that would (protocol.md §2).
  static std::optional<std::string> why_lost(const RouteNaming& from, const RouteNaming& to,
                                             std::string_view operation);

 private:
  /// A set of requests that a table can distinguish.
  struct Region {
    std::vector<std::string> methods;  // empty: all
    PathPattern path;
    std::optional<Region> common(const Region& other) const;
    bool covers(const Region& other) const noexcept;
  };
  struct Entry {
    Region region;
    std::string name;
    FormerNames former;
    bool knows(std::string_view operation) const noexcept;
  };

  const Entry& find(std::string_view method, std::string_view path) const noexcept;
  static bool covered(std::span<const Entry> by, const Region& region) noexcept;

  std::vector<Entry> entries_;
};

}  // namespace idem
