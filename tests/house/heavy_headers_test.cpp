#include "house/sources.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// A batch reads a header once; but one include puts it into the batch of another folder, and a
/// build of file by file (the preset `clang`) reads it in each. This follows the includes, without
/// a compiler, so that a heavy header does not come back with one line in a header of ours.
namespace idem::test {
namespace {

/// A header that costs about a second or more in each source that it reaches.
struct HeavyHeader {
  std::string prefix;     ///< What its include begins with.
  std::size_t files_max;  ///< And no less: a bound that is loose lets the next one in.
  std::string why;
};

/// Of the .cpp files in src. Raise a bound only for a file that uses the header itself, and tell
/// the reason; otherwise take the include out of the header that brings it.
const std::vector<HeavyHeader> heavy{
    {"CLI/", 1, "the one file that parses command lines; the others declare flags as data"},
    {"rocksdb/", 6, "the index of embedded:, its cursor, options, copy and failures"},
    {"boost/asio", 13, "the loop and its connecting, the connections of http, and TLS of redis"},
    {"boost/beast", 0, "its adapter is for services that have it already"},
    {"boost/json", 0, "an oracle of the tests"},
    {"fmt/", 59, "files that format text for people or SQL, each by itself; no header"},
    {"curl/", 4, "webhooks, DynamoDB's and idem check's requests"},
    {"httplib", 0, "a server of the examples"},
    {"yaml-cpp/", 1, "the reader of settings"},
    {"openssl/", 14, "digests, seals, signatures and TLS, each by itself; no header"},
    {"regex", 0, "it costs a second, and its time grows with what it reads"},
    {"gtest/", 0, "the product has no tests in it"},
    {"gmock/", 0, "the product has no tests in it"},
    {"rapidcheck", 0, "the product has no tests in it"},
};

struct Includes {
  std::vector<std::string> ours;     ///< Files below the root.
  std::vector<std::string> foreign;  ///< As they are written.
};

using Tree = std::map<std::string, Includes>;

/// All files of src and include with what they include.
Tree included() {
  const std::regex include(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
  Tree tree;
  std::vector<fs::path> files = sources("src");
  std::ranges::copy(sources("include"), std::back_inserter(files));
  for (const fs::path& file : files) tree[fs::relative(file, root).generic_string()];
  for (auto& [name, includes] : tree) {
    for (const std::string& line : lines_of(root / name)) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      const std::string written = match[1];
      bool is_ours = false;
      for (const std::string& place :
           {"src/" + written, "include/" + written,
            (fs::path(name).parent_path() / written).lexically_normal().generic_string()}) {
        if (is_ours || !tree.contains(place)) continue;
        is_ours = true;
        includes.ours.push_back(place);
      }
      if (!is_ours) includes.foreign.push_back(written);
    }
  }
  return tree;
}

/// The shortest path of includes from a file to the header: "a.cpp > b.hpp > <c.h>". None: it is
/// not reached.
std::optional<std::string> path_to(const Tree& tree, const std::string& file,
                                   const std::string& prefix) {
  std::set<std::string> seen{file};
  std::vector<std::pair<std::string, std::string>> queue{{file, file}};
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const auto [at, path] = queue[next];
    const Includes& includes = tree.at(at);
    for (const std::string& header : includes.foreign) {
      if (header.starts_with(prefix)) return path + " > <" + header + ">";
    }
    for (const std::string& ours : includes.ours) {
      if (seen.insert(ours).second) queue.emplace_back(ours, path + " > " + ours);
    }
  }
  return std::nullopt;
}

TEST(House, heavy_headers_reach_few_files) {
  const Tree tree = included();
  ASSERT_GT(tree.size(), 900U) << "the scan found too little to mean anything";
  for (const HeavyHeader& header : heavy) {
    std::size_t files = 0;
    std::string by_headers;
    std::string by_themselves;
    for (const auto& [file, unused] : tree) {
      if (!file.starts_with("src/") || !file.ends_with(".cpp")) continue;
      const auto path = path_to(tree, file, header.prefix);
      if (!path) continue;
      ++files;
      const bool is_direct = path->find(" > ") == path->rfind(" > ");
      (is_direct ? by_themselves : by_headers) += "  " + *path + "\n";
    }
    EXPECT_EQ(files, header.files_max)
        << header.prefix << " (" << header.why << ") reaches these files:\n"
        << by_headers << by_themselves;
  }
}

}  // namespace
}  // namespace idem::test
