#pragma once

#include "core/bytes/digests.hpp"

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// The part of a document that a fingerprint rule's JSON Pointers (RFC 6901) choose.
class JsonSelection {
 public:
  /// The error is a sentence that quotes the pointer. Refuses an `exclude` of the whole document:
  /// all bodies would be alike.
  static std::expected<JsonSelection, std::string> parse(std::span<const std::string> include,
                                                         std::span<const std::string> exclude);

  /// `form` is the fingerprint_form() of a document. `exclude` removes values. Without `include`,
  /// the digest covers the rest of the document; otherwise the values at `include`, each with its
  /// pointer. If a pointer finds no value (its path leads into a scalar, past an array's end or
  /// through a removed value), the value counts as absent, which is not null. If no pointer of
  /// `include` finds a value, the rest of the document counts. Time: one pass over the form, and
  /// for each name in it the number of pointers that lead there.
  Digest digest(std::string_view form) const;

  /// The pointers of `include` that find a value in this form. None: the rest of the document
  /// counts.
  std::vector<std::string> found_in(std::string_view form) const;

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
