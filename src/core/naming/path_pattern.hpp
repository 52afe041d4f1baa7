#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// A path with placeholders: `{id}` in `/v1/quotes/{id}` matches one segment, `{rest...}` in
/// `/v1/{rest...}` all that follow. Matches the path byte by byte as it was sent (P3), without
/// decoding or cleaning it.
class PathPattern {
 public:
  /// The error says what is wrong and what to write.
  static std::expected<PathPattern, std::string> parse(std::string_view text);

  /// `path` without a query.
  bool matches(std::string_view path) const noexcept;
  /// The pattern of the paths that both match; none: there are none. Its text() is not adapted.
  std::optional<PathPattern> common(const PathPattern& other) const;
  /// True if it matches all paths that `other` matches.
  bool covers(const PathPattern& other) const noexcept;

  const std::string& text() const noexcept { return text_; }

 private:
  struct Segment {
    std::string literal;
    bool any = false;
    bool covers(const Segment& other) const noexcept;
  };
  std::string text_;
  std::vector<Segment> segments_;
  bool open_end_ = false;  // one more segment at least, and any number; they may be empty
};

}  // namespace idem
