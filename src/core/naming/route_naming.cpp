#include "core/naming/route_naming.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem {
namespace {

std::string quoted_name(std::string_view text) { return '"' + std::string(text) + '"'; }

std::optional<std::string> name_complaint(std::string_view name) {
  const bool control = std::ranges::any_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (control) return "a route's name holds a control character";
  if (name.size() > limits::operation_bytes_max) {
    return quoted_name(name.substr(0, 40)) + "... is too long for a route's name: write at most " +
           std::to_string(limits::operation_bytes_max) + " bytes";
  }
  if (split_own_operation(name)) {
    return quoted_name(name) + " is the form for routes without a name: write a name without ' /'";
  }
  return std::nullopt;
}

std::string lost(std::string_view operation, std::string_view requests, std::string_view name) {
  return "the store holds records of the operation " + quoted_name(operation) +
         ", and retries of " + std::string(requests) + " would be looked up " +
         (name.empty() ? "by method and path" : "as " + quoted_name(name)) +
         " and run again: write formerly: [" + quoted_name(operation) + "] there, or keep the name";
}

}  // namespace

std::optional<RouteNaming::Region> RouteNaming::Region::common(const Region& other) const {
  auto both = path.common(other.path);
  if (!both) return std::nullopt;
  Region region{methods.empty() ? other.methods : methods, std::move(*both)};
  if (methods.empty() || other.methods.empty()) return region;
  std::erase_if(region.methods, [&](const std::string& method) {
    return std::ranges::find(other.methods, method) == other.methods.end();
  });
  if (region.methods.empty()) return std::nullopt;
  return region;
}

bool RouteNaming::Region::covers(const Region& other) const noexcept {
  if (!path.covers(other.path)) return false;
  if (methods.empty()) return true;
  return !other.methods.empty() && std::ranges::all_of(other.methods, [&](const auto& method) {
    return std::ranges::find(methods, method) != methods.end();
  });
}

bool RouteNaming::Entry::knows(std::string_view operation) const noexcept {
  return name == operation || former.has_name(operation);
}

std::expected<RouteNaming, std::string> RouteNaming::parse(const std::vector<RouteName>& routes) {
  if (routes.size() > limits::routes_max) {
    return std::unexpected("more than " + std::to_string(limits::routes_max) + " routes");
  }
  RouteNaming naming;
  for (const RouteName& route : routes) {
    auto path = PathPattern::parse(route.pattern);
    if (!path) return std::unexpected(std::move(path.error()));
    if (auto wrong = name_complaint(route.name)) return std::unexpected(std::move(*wrong));
    auto former = FormerNames::parse(route.formerly);
    if (!former) return std::unexpected(std::move(former.error()));
    naming.entries_.push_back({{route.methods, std::move(*path)}, route.name, std::move(*former)});
  }
  naming.entries_.push_back({{{}, *PathPattern::parse("/{rest...}")}, {}, {}});
  return naming;
}

const RouteNaming::Entry& RouteNaming::find(std::string_view method,
                                            std::string_view path) const noexcept {
  for (const Entry& entry : entries_) {
    const auto& methods = entry.region.methods;
    const bool fits = methods.empty() || std::ranges::find(methods, method) != methods.end();
    if (fits && entry.region.path.matches(path)) return entry;
  }
  return entries_.back();
}

bool RouteNaming::covered(std::span<const Entry> by, const Region& region) noexcept {
  return std::ranges::any_of(by, [&](const Entry& entry) { return entry.region.covers(region); });
}

std::optional<std::string> RouteNaming::why_lost(const RouteNaming& from, const RouteNaming& to,
                                                 std::string_view operation) {
  // Only requests of this method and path have such an operation.
  if (const auto own = split_own_operation(operation)) {
    const Entry& now = to.find(own->first, own->second);
    if (now.name.empty() || now.former.has_own(own->first, own->second)) return std::nullopt;
    return lost(operation, operation, now.name);
  }
  bool known = false;
  const std::span before(from.entries_);
  const std::span after(to.entries_);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].knows(operation)) continue;
    known = true;
    for (std::size_t j = 0; j < after.size(); ++j) {
      const auto both = before[i].region.common(after[j].region);
      if (!both || after[j].knows(operation)) continue;
      // An earlier route matches these requests first, before or now.
      if (covered(before.first(i), *both) || covered(after.first(j), *both)) continue;
      return lost(operation, "requests to " + before[i].region.path.text(), after[j].name);
    }
  }
  // The recorded table does not have the name, so the requests of its records are not known.
  if (!known && !std::ranges::any_of(after, [&](const Entry& e) { return e.knows(operation); })) {
    return lost(operation, "its requests", "");
  }
  return std::nullopt;
}

}  // namespace idem
