#include "core/naming/path_pattern.hpp"

#include <algorithm>

namespace idem {
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
                           " holds a byte that no path has; leave out the query and write other "
                           "bytes as clients send them, percent-encoded");
  }
  std::string_view rest = text.substr(1);
  for (bool more = true; more;) {
    more = rest.find('/') != std::string_view::npos;
    const auto segment = take_segment(rest);
    const bool named = segment.starts_with('{') && segment.ends_with('}') && segment.size() > 2;
    if (!named && segment.find_first_of("{}") != std::string_view::npos) {
      return std::unexpected(quoted(segment) +
                             " is no segment; {name} matches a whole segment, {rest...} the rest "
                             "of the path");
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

bool PathPattern::Segment::covers(const Segment& other) const noexcept {
  if (!any) return !other.any && literal == other.literal;
  return other.any || !other.literal.empty();
}

std::optional<PathPattern> PathPattern::common(const PathPattern& other) const {
  const bool longer = segments_.size() >= other.segments_.size();
  const PathPattern& whole = longer ? *this : other;
  const PathPattern& part = longer ? other : *this;
  const std::size_t shared = part.segments_.size();
  if (shared < whole.segments_.size() ? !part.open_end_ : part.open_end_ != whole.open_end_) {
    return std::nullopt;  // One ends where the other goes on.
  }
  PathPattern both = whole;
  for (std::size_t i = 0; i < shared; ++i) {
    const Segment& segment = part.segments_[i];
    if (both.segments_[i].covers(segment)) {
      both.segments_[i] = segment;
    } else if (!segment.covers(both.segments_[i])) {
      return std::nullopt;
    }
  }
  return both;
}

bool PathPattern::covers(const PathPattern& other) const noexcept {
  const std::size_t size = segments_.size();
  if (open_end_) {
    if (other.segments_.size() < size + (other.open_end_ ? 0 : 1)) return false;
  } else if (other.open_end_ || other.segments_.size() != size) {
    return false;
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (!segments_[i].covers(other.segments_[i])) return false;
  }
  return true;
}

}  // namespace idem
