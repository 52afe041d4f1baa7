#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::test {

/// A shell command on a terminal of its own, with `idem` on its path and no IDEM_ variable of this
/// process. Killed when this object goes.
class OnTerminal {
 public:
  /// `columns`: the terminal's width; 0: it does not say. `environment`: `NAME=VALUE`, which wins
  /// over this process's own.
  OnTerminal(const std::filesystem::path& folder, const std::string& command, int columns = 80,
             const std::vector<std::string>& environment = {});
  ~OnTerminal();
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  /// Waits until the terminal shows `part` behind what was waited for before.
  testing::AssertionResult shows(std::string_view part);
  void type(const std::string& keys) const;
  /// Its exit code once it has ended.
  int exit_code();
  const std::string& output() const { return output_; }

 private:
  /// False: nobody has the terminal open any more, or the time is over.
  bool read_more();

  int terminal_ = -1;
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::string output_;
  std::size_t seen_ = 0;
};

}  // namespace idem::test
