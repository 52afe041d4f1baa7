#include "cli/settings/paths.hpp"

#include <idem/open_store.hpp>

#include <filesystem>

namespace idem::cli {
namespace {

namespace fs = std::filesystem;
using config::Given;
using config::GivenList;
using config::Shape;

std::string absolute_path(const fs::path& path) {
  std::error_code failed;
  const fs::path whole = fs::absolute(path, failed);
  return failed ? path.string() : whole.lexically_normal().string();
}

void make_absolute(Given& given, Shape::Kind kind, const std::string& default_folder) {
  if (given.text.empty()) return;
  std::string folder = given.given ? std::string() : default_folder;
  if (given.place.in_file()) folder = folder_of(given.place.source);
  if (folder.empty()) folder = absolute_path(".");
  if (kind == Shape::Kind::store) {
    given.text = absolute_store_url(given.text, folder);
  } else {
    given.text = (fs::path(folder) / given.text).lexically_normal().string();
  }
}

}  // namespace

std::string folder_of(const std::string& path) {
  return fs::path(absolute_path(path)).parent_path().string();
}

void make_paths_absolute(const std::vector<config::Setting>& table, const std::string& folder) {
  for (const auto& setting : table) {
    const auto kind = setting.shape.kind;
    if (kind != Shape::Kind::path && kind != Shape::Kind::paths && kind != Shape::Kind::store)
      continue;
    if (auto* const* given = std::get_if<Given*>(&setting.slot)) {
      make_absolute(**given, kind, folder);
    } else if (auto* const* list = std::get_if<GivenList*>(&setting.slot)) {
      for (auto& item : (*list)->items) make_absolute(item, kind, folder);
    }
  }
}

}  // namespace idem::cli
