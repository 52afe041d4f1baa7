#include "house/references.hpp"

#include <cctype>

namespace idem::test {
namespace {

const std::vector<std::string> folders_of_text{
    "src",   "include", "schema", "tests",  "fuzz", "examples",  "bench", "scripts",
    "cmake", "console", "check",  "deploy", "docs", "packaging", ".ci"};

bool is_text(const fs::path& file) {
  static const std::set<std::string> others{".json", ".png", ".svg", ".txt", ".dict"};
  return file.filename() == "CMakeLists.txt" || !others.contains(file.extension());
}

std::string_view comment_mark_of(const fs::path& file) {
  static const std::set<std::string> slashes{".cpp", ".hpp", ".go", ".js", ".mjs", ".ts", ".tsx"};
  const std::string extension = file.extension();
  if (slashes.contains(extension)) return "//";
  return extension == ".sql" || extension == ".lua" ? "--" : "#";
}

/// Where the comment of a line begins; the `//` of an address begins none.
std::size_t comment_in(std::string_view line, std::string_view mark) {
  std::size_t at = line.find(mark);
  while (at != line.npos && at > 0 && line[at - 1] == ':') at = line.find(mark, at + 1);
  return at == line.npos ? at : at + mark.size();
}

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_./*#-").contains(c);
}

/// Some `folder/part*` or `part*.end` of a path.
bool fits(const std::string& path, const std::string& pattern) {
  const std::size_t star = pattern.find('*');
  const std::string begin = pattern.substr(0, star);
  const std::string end = pattern.substr(star + 1);
  return path.size() >= begin.size() + end.size() && path.starts_with(begin) && path.ends_with(end);
}

}  // namespace

std::vector<fs::path> files_of_text() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_regular_file() && is_text(entry.path())) found.push_back(entry.path());
  }
  for (const auto& folder : folders_of_text) {
    if (!fs::exists(root / folder)) continue;
    fs::recursive_directory_iterator at(root / folder);
    for (; at != fs::recursive_directory_iterator(); ++at) {
      const std::string name = at->path().filename();
      const bool is_brought = name == "node_modules" || name == "__pycache__" || name == "seeds";
      if (at->is_directory() && is_brought) at.disable_recursion_pending();
      if (at->is_regular_file() && is_text(at->path())) found.push_back(at->path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<NumberedLine> prose_of(const fs::path& file) {
  std::vector<NumberedLine> prose;
  const bool is_page = file.extension() == ".md";
  const std::string_view mark = comment_mark_of(file);
  bool in_block = false;
  std::size_t number = 0;
  for (auto& line : lines_of(file)) {
    ++number;
    if (is_page) {
      if (line.starts_with("```")) in_block = !in_block;
      if (!in_block) prose.push_back({file, number, std::move(line)});
      continue;
    }
    const std::size_t begin = comment_in(line, mark);
    if (begin != line.npos) prose.push_back({file, number, line.substr(begin)});
  }
  return prose;
}

std::vector<std::string> path_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_of_name(text[end])) ++end;
    std::string name(text.substr(at, end - at));
    while (name.ends_with('.') || name.ends_with('/') || name.ends_with('-')) name.pop_back();
    const bool is_free = at == 0 || !std::string_view(":$@~}<>=").contains(text[at - 1]);
    const bool goes_on = end < text.size() && std::string_view("{<$%").contains(text[end]);
    if (name.find_first_of("./") != name.npos && is_free && !goes_on && !name.starts_with('/')) {
      names.push_back(std::move(name));
    }
    at = end + 1;
  }
  return names;
}

PathNames::PathNames() {
  const auto add = [this](const fs::path& path) {
    std::string name = fs::relative(path, root).generic_string();
    while (names_.insert(name).second) {
      const std::size_t slash = name.find('/');
      if (slash == name.npos) return;
      name.erase(0, slash + 1);
    }
  };
  for (const auto& entry : fs::directory_iterator(root)) add(entry.path());
  for (const auto& folder : folders_of_text) {
    if (!fs::exists(root / folder)) continue;
    fs::recursive_directory_iterator at(root / folder);
    for (; at != fs::recursive_directory_iterator(); ++at) {
      if (at->path().filename() == "node_modules") at.disable_recursion_pending();
      add(at->path());
    }
  }
}

bool PathNames::has(const std::string& name, const fs::path& file) const {
  const auto here = (file.parent_path() / name).lexically_normal().lexically_relative(root);
  const auto alone = fs::path(name).lexically_normal().generic_string();
  if (name.find('*') == name.npos) {
    return names_.contains(here.generic_string()) || names_.contains(alone);
  }
  return std::ranges::any_of(names_, [&](const std::string& path) { return fits(path, alone); });
}

fs::path PathNames::page(std::string name, const fs::path& file) const {
  const fs::path here = (file.parent_path() / name).lexically_normal();
  if (fs::exists(here)) return here;
  for (;;) {
    if (names_.contains(name)) break;
    const std::size_t slash = name.find('/');
    if (slash == name.npos) return {};
    name.erase(0, slash + 1);
  }
  for (const char* folder : {"", "docs", "docs/internals"}) {
    if (fs::exists(root / folder / name)) return root / folder / name;
  }
  return {};
}

std::set<std::string> anchors_of(const fs::path& page) {
  std::set<std::string> anchors;
  for (const auto& line : prose_of(page)) {
    if (!line.text.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.text.substr(line.text.find_first_not_of("# "))) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80) {
        anchor += static_cast<char>(std::tolower(byte));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    anchors.insert(std::move(anchor));
  }
  return anchors;
}

}  // namespace idem::test
