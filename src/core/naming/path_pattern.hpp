#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// A path with holes: `/v1/quotes/{id}` takes one segment there, `/v1/{rest...}` whatever follows.
/// Compared byte by byte with the path as it was sent (P3): nothing is decoded or cleaned first.
class PathPattern {
 public:
  /// The error says what is wrong and what to write.
  static std::expected<PathPattern, std::string> parse(std::string_view text);

  /// `path` without a query.
  bool matches(std::string_view path) const noexcept;
  /// What both match, which is a pattern again; none: nothing. Its text is not made anew.
  std::optional<PathPattern> common(const PathPattern& other) const;
  /// True when it matches all that `other` matches.
  bool covers(const PathPattern& other) const noexcept;

  const std::string& text() const noexcept { return text_; }

 private:
  struct Segment {
    std::string literal;
    bool any = false;
    bool takes(const Segment& other) const noexcept;
  };
  std::string text_;
  std::vector<Segment> segments_;
  bool open_end_ = false;  // one more segment at least, and any number; they may be empty
};

}  // namespace idem
