#pragma once

#include "config/given.hpp"

#include <idem/limits.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The part of YAML 1.2 that a configuration needs: one document of maps, lists and scalars.
namespace idem::config {

/// A value with the place where it begins.
struct Node {
  enum class Kind { scalar, list, map };
  /// The type of a scalar without quotes: YAML 1.2 core schema, and the words of 1.1 such as `yes`,
  /// so that no other reader sees another type.
  enum class Type { text, null, truth, number };

  Kind kind = Kind::scalar;
  Type type = Type::text;
  std::string text{};         ///< Of a scalar.
  std::vector<Node> keys{};   ///< Of a map, in order: scalars, each of them once.
  std::vector<Node> items{};  ///< A map's values, or a list's.
  Place place{};
};

/// How much of a document is read: by default as much as a configuration has.
struct YamlLimits {
  std::size_t bytes = limits::config_file_bytes_max;
  std::size_t depth = limits::config_depth_max;
};

/// Parses the document in `text`. Errors, with places of `source`: more bytes or deeper nesting
/// than `most`; bytes that are no UTF-8; tabs and other control characters; duplicate keys;
/// anchors, aliases and tags; a second document. An empty file is an empty map.
std::optional<Node> read_yaml(std::string_view text, const std::string& source,
                              Complaints& complaints, YamlLimits most = {});

/// `text` as a scalar that reads as the same text: plain if that is unambiguous, else in quotes.
std::string yaml_text(std::string_view text);

/// The type of this scalar without quotes.
Node::Type plain_type(std::string_view text);

}  // namespace idem::config
