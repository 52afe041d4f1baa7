#pragma once

#include "house/sources.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

/// What pages, sources and SQL files say about each other's names.
namespace idem::test {

/// A line and the place that a reader opens to see it.
struct NumberedLine {
  fs::path file;
  std::size_t number = 0;
  std::string text;
};

/// The repository's files of text, without those that an installation or a build brings.
std::vector<fs::path> files_of_text();

/// The lines of a page outside its blocks of code, or the comments of a source.
std::vector<NumberedLine> prose_of(const fs::path& file);

/// Path names in a text, with `*` where the text has it, and with `#ANCHOR` at their end. Without
/// addresses, and without names that begin at the root or at a variable.
std::vector<std::string> path_names(std::string_view text);

/// The names under which a text may mention the repository's files and folders: each path, and each
/// end of it.
class PathNames {
 public:
  PathNames();

  /// `name` as it stands in `file`: from the root, from the folder of `file`, or the end of a path.
  bool has(const std::string& name, const fs::path& file) const;
  /// The page with this name, or with the longest end of it. Empty: there is none.
  fs::path page(std::string name, const fs::path& file) const;

 private:
  std::set<std::string> names_;
};

/// The anchors of a page's headings, as GitHub makes them.
std::set<std::string> anchors_of(const fs::path& page);

}  // namespace idem::test
