#pragma once

#include "cli/command_line/command.hpp"

#include <string>

namespace idem::cli {

/// `idem store backup`, `check`, `reindex`, `restore` and `recover`: work on the file of an
/// embedded store. They ask no gateway, and one may serve meanwhile, except for the last three.
class StoreFileVerbs {
 public:
  /// Each verb is declared already, and outlives this.
  StoreFileVerbs(const Command& restore, const Command& recover, const Command& reindex,
                 const Command& check, const Command& backup);

  static constexpr const char* backup_text =
      "Copy the embedded store to a file, beside a gateway that serves from it or not";
  static constexpr const char* check_text =
      "Read all of an embedded store or of a backup, and say what is damaged; changes nothing";
  static constexpr const char* reindex_text =
      "Make anew what an embedded: store can make of its records (lists of what is due and of open "
      "records, usage), without a gateway";
  static constexpr const char* restore_text =
      "Make an embedded store of a backup, without a gateway; what was not settled becomes unknown";
  static constexpr const char* recover_text =
      "Make a store of what can be read of a damaged embedded store, which stays as it is";

  bool parsed() const;
  /// The exit code.
  int run(bool json) const;

 private:
  int back_up(bool json) const;
  int check(bool json) const;
  int reindex(bool json) const;
  int restore(bool json) const;
  int recover(bool json) const;

  Command backup_;
  Command check_;
  Command reindex_;
  Command restore_;
  Command recover_;
  std::string store_;
  std::string file_;
  bool replace_ = false;
  bool accept_damage_ = false;
};

}  // namespace idem::cli
