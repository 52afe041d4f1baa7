#pragma once

#include "cli/command_line/command.hpp"

#include <string>

namespace idem::cli {

/// `idem store copy FROM TO`: makes TO, a store of any kind, hold what FROM holds, and closes FROM.
/// Asks no gateway. Wherever it ends, one of the two stores takes a start at most, and the same
/// command goes on.
class StoreCopyVerb {
 public:
  /// The verb is declared already, and outlives this.
  explicit StoreCopyVerb(const Command& copy);

  static constexpr const char* text =
      "Copy a store to a new one of any kind, compare the two, and close the old one, so that only "
      "the copy can be used; goes on where it was ended";

  bool parsed() const { return copy_.parsed(); }
  /// The exit code.
  int run(bool json) const;

 private:
  Command copy_;
  std::string from_;
  std::string to_;
  bool prepare_ = false;
  bool keep_source_ = false;
  bool undo_ = false;
  std::string lost_copy_;
};

}  // namespace idem::cli
