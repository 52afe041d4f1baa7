#include "core/naming/former_names.hpp"

#include <algorithm>

namespace idem {

std::string own_operation(std::string_view method, std::string_view path) {
  std::string name;
  name.reserve(method.size() + 1 + path.size());
  name.append(method).append(1, ' ').append(path);
  return name;
}

std::optional<std::pair<std::string_view, std::string_view>> split_own_operation(
    std::string_view operation) noexcept {
  // A method is a token, so the first space ends it.
  const auto space = operation.find(' ');
  if (space == 0 || space == operation.npos || !operation.substr(space + 1).starts_with('/')) {
    return std::nullopt;
  }
  return std::pair(operation.substr(0, space), operation.substr(space + 1));
}

std::expected<FormerNames, std::string> FormerNames::parse(
    const std::vector<std::string>& entries) {
  FormerNames names;
  for (const std::string& entry : entries) {
    if (entry.empty()) return std::unexpected("an entry of formerly is empty");
    const auto own = split_own_operation(entry);
    if (!own) {
      names.entries_.push_back({.name = entry});
      continue;
    }
    auto path = PathPattern::parse(own->second);
    if (!path) return std::unexpected("formerly \"" + entry + "\": " + path.error());
    names.entries_.push_back(
        {.name = {}, .method = std::string(own->first), .path = std::move(*path)});
  }
  return names;
}

std::vector<std::string> FormerNames::operations(std::string_view method,
                                                 std::string_view path) const {
  std::vector<std::string> found;
  for (const Entry& entry : entries_) {
    if (!entry.name.empty()) {
      found.push_back(entry.name);
    } else if (entry.method == method && entry.path.matches(path)) {
      found.push_back(own_operation(method, path));
    }
  }
  return found;
}

std::vector<std::string> FormerNames::fixed() const {
  std::vector<std::string> found;
  for (const Entry& entry : entries_) {
    if (!entry.name.empty()) {
      found.push_back(entry.name);
    } else if (!entry.path.text().contains('{')) {
      found.push_back(own_operation(entry.method, entry.path.text()));
    }
  }
  return found;
}

bool FormerNames::has_name(std::string_view name) const noexcept {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.name == name; });
}

bool FormerNames::has_own(std::string_view method, std::string_view path) const noexcept {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.name.empty() && entry.method == method && entry.path.matches(path);
  });
}

}  // namespace idem
