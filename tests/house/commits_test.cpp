#include "house/sources.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <optional>

/// A list of commits shows 72 columns of each subject.
namespace idem::test {
namespace {

constexpr std::size_t subject_columns_max = 72;
/// The commit from which on subjects have this length.
const std::string subjects_since = "eb86768c0a26491ca5a0045af07b91fb094678f6";

/// What git prints about the repository; none if it fails.
std::optional<std::string> ask_git(const std::string& question) {
  // The folder may belong to another user, as in a container.
  const std::string command =
      "git -c safe.directory='*' -C '" + root.string() + "' " + question + " 2>/dev/null";
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4096> piece{};
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    text.append(piece.data(), count);
  }
  if (::pclose(pipe) != 0) return std::nullopt;
  return text;
}

}  // namespace

TEST(HouseCommits, subjects_fit_into_72_columns) {
  if (!fs::exists(root / ".git")) GTEST_SKIP() << "this is no clone: there is no " << root / ".git";
  if (!ask_git("rev-parse HEAD")) GTEST_SKIP() << "git is missing, or cannot read the clone";
  if (!ask_git("cat-file -e " + subjects_since + "^{commit}")) {
    GTEST_SKIP() << "the clone is too shallow: it lacks " << subjects_since;
  }
  const auto log = ask_git("log --format='%H %s' " + subjects_since + "..HEAD");
  ASSERT_TRUE(log);
  std::istringstream lines(*log);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    const std::string hash = line.substr(0, space);
    // It landed before this test, with 73.
    if (hash == "fe61cc1c2431eea3a62ad9584cc8dc8765f8e159") continue;
    EXPECT_LE(columns(std::string_view(line).substr(space + 1)), subject_columns_max) << line;
  }
}

}  // namespace idem::test
