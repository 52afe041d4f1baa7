#pragma once

#include "cli/admin_client.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// `idem keys list|show|resolve|release`: the operator's view of the records, through the admin
/// API.
class KeysCommand {
 public:
  /// Declares the command; `app` outlives this.
  explicit KeysCommand(CLI::App& app);

  bool parsed() const { return command_->parsed(); }
  /// The exit code.
  int run();

 private:
  struct Filter {
    std::string state, scope, operation, key, older_than, cursor;
    std::size_t limit = 0;
  };
  struct Answer {
    int status = 0;
    std::vector<std::string> headers;
    std::string body_file;
  };

  CLI::App* declare(const char* name, const char* text);
  void declare_list();
  void declare_resolve();
  int list();
  int show();
  int resolve();
  int release();
  /// Asks and tells what came: the JSON, or what `print` makes of it.
  int finish(const std::string& target, const std::string* body,
             void (*print)(const std::string& json));

  CLI::App* command_;
  CLI::App* list_ = nullptr;
  CLI::App* show_ = nullptr;
  CLI::App* resolve_ = nullptr;
  CLI::App* release_ = nullptr;
  AdminAccess access_;
  bool json_ = false;
  Filter filter_;
  std::string ref_, as_, evidence_, reason_, observed_at_;
  std::uint64_t fence_ = 0;
  Answer answer_;
};

}  // namespace idem::cli
