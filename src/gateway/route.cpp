#include "gateway/route.hpp"

#include <algorithm>

namespace idem::gateway {
namespace {

std::string_view take_segment(std::string_view& rest) noexcept {
  const auto end = std::min(rest.find('/'), rest.size());
  const auto segment = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return segment;
}

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

}  // namespace

std::expected<PathPattern, std::string> PathPattern::parse(std::string_view text) {
  PathPattern pattern;
  pattern.text_ = text;
  if (!text.starts_with('/')) {
    return std::unexpected(quoted(text) + " is no path; write one that begins with /");
  }
  const bool bad_byte = std::ranges::any_of(
      text, [](char c) { return c <= ' ' || c >= 0x7F || c == '?' || c == '#'; });
  if (bad_byte) {
    return std::unexpected(quoted(text) +
                           " holds a byte that no path has; leave out the query and write others "
                           "as clients send them, percent-encoded");
  }
  std::string_view rest = text.substr(1);
  for (bool more = true; more;) {
    more = rest.find('/') != std::string_view::npos;
    const auto segment = take_segment(rest);
    const bool named = segment.starts_with('{') && segment.ends_with('}') && segment.size() > 2;
    if (!named && segment.find_first_of("{}") != std::string_view::npos) {
      return std::unexpected(quoted(segment) +
                             " is no segment; {name} stands for a whole one, {rest...} for the "
                             "tail");
    }
    if (named && segment.ends_with("...}")) {
      if (more) return std::unexpected(quoted(segment) + " can only be the last segment");
      pattern.open_end_ = true;
      break;
    }
    pattern.segments_.push_back({named ? std::string() : std::string(segment), named});
  }
  return pattern;
}

bool PathPattern::matches(std::string_view path) const noexcept {
  if (!path.starts_with('/')) return false;
  std::string_view rest = path.substr(1);
  bool more = true;
  for (const auto& segment : segments_) {
    if (!more) return false;
    more = rest.find('/') != std::string_view::npos;
    const auto sent = take_segment(rest);
    if (segment.any ? sent.empty() : sent != segment.literal) return false;
  }
  return open_end_ ? more || segments_.empty() : !more;
}

bool PathPattern::covers(const PathPattern& other) const noexcept {
  if (open_end_ && segments_.empty()) return true;
  const bool enough = open_end_
                          ? other.segments_.size() + (other.open_end_ ? 1 : 0) > segments_.size()
                          : !other.open_end_ && other.segments_.size() == segments_.size();
  if (!enough) return false;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const auto& mine = segments_[i];
    const auto& theirs = other.segments_[i];
    // A hole takes any segment but an empty one.
    const bool within = mine.any ? theirs.any || !theirs.literal.empty()
                                 : !theirs.any && theirs.literal == mine.literal;
    if (!within) return false;
  }
  return true;
}

bool Route::covers(const Route& other) const noexcept {
  const bool all_methods =
      methods.empty() ||
      (!other.methods.empty() && std::ranges::all_of(other.methods, [&](const auto& method) {
        return std::ranges::find(methods, method) != methods.end();
      }));
  return all_methods && path.covers(other.path);
}

std::string Route::operation(std::string_view method, std::string_view path_sent) const {
  if (!name.empty()) return name;
  std::string own(method);
  own += ' ';
  own += path_sent;
  return own;
}

RouteTable::RouteTable(std::vector<Route> routes, Route rest) : routes_(std::move(routes)) {
  rest.path = *PathPattern::parse("/{rest...}");
  rest.methods.clear();
  routes_.push_back(std::move(rest));
}

const Route& RouteTable::find(std::string_view method, std::string_view path) const noexcept {
  for (const auto& route : routes_) {
    const bool method_fits =
        route.methods.empty() || std::ranges::find(route.methods, method) != route.methods.end();
    if (method_fits && route.path.matches(path)) return route;
  }
  return routes_.back();
}

}  // namespace idem::gateway
