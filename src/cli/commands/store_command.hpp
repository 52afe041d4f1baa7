#pragma once

#include "cli/commands/operator_command.hpp"
#include "cli/commands/store_copy_verb.hpp"
#include "cli/commands/store_file_verbs.hpp"
#include "json/value.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

namespace idem::cli {

/// `idem store rekey` and `shred`: work on what lies in the store of a running gateway or worker.
/// `backup`, `check`, `restore` and `recover`: work on the file of an embedded store. `copy`: from
/// a store to another.
class StoreCommand : public OperatorCommand {
 public:
  explicit StoreCommand(const Command& program);

  /// The exit code.
  int run();

 private:
  int rekey();
  int shred();
  /// Asks for a step of a shred. Error: the exit code.
  std::expected<json::Value, int> shred_step(std::optional<std::int64_t> key);
  bool confirms() const;

  Command rekey_;
  Command shred_;
  StoreFileVerbs files_;
  StoreCopyVerb copy_;
  std::string scope_;
  std::string reason_;
  bool yes_ = false;
};

}  // namespace idem::cli
