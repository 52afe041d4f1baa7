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

/// A table of route names, understood; behind its last route stands one without a name that takes
/// the rest.
class RouteNaming {
 public:
  /// Refused with a sentence: a pattern or `formerly` entry that is none, a name that looks like
  /// "METHOD /path" (records of the one would be found as the other's), a control character or
  /// more than limits::operation_bytes_max bytes in a name, too many routes.
  static std::expected<RouteNaming, std::string> parse(const std::vector<RouteName>& routes);

  /// Why a retry of a record that `from` stored or found under `operation` might not find it under
  /// `to`, and so run again; none: all find it. It judges by patterns, so it may refuse what no
  /// request would ever meet, and never the other way round (protocol.md §2).
  static std::optional<std::string> why_lost(const RouteNaming& from, const RouteNaming& to,
                                             std::string_view operation);

 private:
  /// Requests, as far as a table can tell them apart.
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
