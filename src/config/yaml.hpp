#pragma once

#include "config/given.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// YAML 1.2 as a configuration needs it: one document of maps, lists and scalars.
namespace idem::config {

/// A value with the place where it begins.
struct Node {
  enum class Kind { scalar, list, map };
  /// What a scalar without quotes is (YAML 1.2 core schema, and the words of 1.1 such as `yes`, so
  /// that no reader takes a value for another type than we do).
  enum class Type { text, null, truth, number };

  Kind kind = Kind::scalar;
  Type type = Type::text;
  std::string text{};         ///< Of a scalar.
  std::vector<Node> keys{};   ///< Of a map, in order: scalars, each of them once.
  std::vector<Node> items{};  ///< A map's values, or a list's.
  Place place{};
};

/// The document in `text`. Refused, with places of `source`: what is larger than
/// limits::config_file_bytes_max or nested deeper than limits::config_depth_max; bytes that are no
/// UTF-8; tabs and other control characters; a key twice; anchors, aliases and tags; a second
/// document. Nothing in the file is an empty map.
std::optional<Node> read_yaml(std::string_view text, const std::string& source,
                              Complaints& complaints);

/// `text` as a scalar that is read as text again: plain where that is unambiguous, else in quotes.
std::string yaml_text(std::string_view text);

/// What a scalar of this spelling without quotes is.
Node::Type plain_type(std::string_view text);

}  // namespace idem::config
