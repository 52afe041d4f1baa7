#pragma once

#include "core/bytes/digests.hpp"

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// What a fingerprint rule's JSON Pointers (RFC 6901) choose of a document.
class JsonSelection {
 public:
  /// The error is a sentence that quotes the pointer. An `exclude` of the whole document is
  /// refused: all bodies would look alike.
  static std::expected<JsonSelection, std::string> parse(std::span<const std::string> include,
                                                         std::span<const std::string> exclude);

  /// `form` is what fingerprint_form() made of a document. Without `include`, the digest of the
  /// document without what `exclude` points at; otherwise of the values that `include` points at,
  /// likewise, each beside its pointer. A pointer that meets nothing (also one that leads into a
  /// value without members, past an array's end or through what is left out) counts as absent,
  /// which is not null. Where none of `include` meets anything, all of the document counts but what
  /// `exclude` points at. Time: one pass over the form, and for each name in it the number of
  /// pointers that lead there.
  Digest digest(std::string_view form) const;

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // A tree of reference tokens; node 0 is the document.
  struct Node {
    std::string token;
    std::string quoted;  // as a name in a canonical text
    bool excluded = false;
    std::size_t included = none;  // which pointer of `include` ends here
    std::vector<std::size_t> children{};
  };
  class Walk;

  std::expected<std::size_t, std::string> node_of(const std::string& pointer);

  std::vector<Node> nodes_{Node{}};
  std::vector<std::string> include_;
};

}  // namespace idem
