#pragma once

#include "store/redis/resp.hpp"

#include <span>
#include <string>
#include <string_view>

/// The scripts of schema/redis; the server runs each as one atomic step.
namespace idem::redis {

struct ScriptText {
  std::string_view name;
  std::string_view text;
};
std::span<const ScriptText> texts() noexcept;

/// In hexadecimal.
std::string sha1_of(std::string_view text);

class Script {
 public:
  /// `flags`: Redis's script flags, empty for none. A script that adds no new record may run on a
  /// server with full memory.
  Script(std::string_view name, std::string_view flags);

  const std::string& text() const noexcept { return text_; }

  /// Begins a call about `key`; the caller must add that many arguments.
  CommandWriter call(std::string& out, std::string_view key, std::size_t arguments) const;

 private:
  std::string text_;
  std::string digest_;  ///< SHA-1, in hexadecimal: the server's name for the script.
};

struct Scripts {
  Script reserve{"commit", ""};
  /// Ends or keeps an attempt; must run also if memory is full, to store the answer.
  Script settle{"commit", "allow-oom"};
  Script look{"look", "no-writes"};
  Script close{"close", "allow-oom"};
  Script open{"open", "allow-oom"};
  Script swap{"swap", "allow-oom"};
  Script cache_put{"cache_put", ""};
  Script compare{"compare", "no-writes"};
  Script relist{"relist", "allow-oom"};
  /// An operator decides also while memory is full, and then the line about it must be stored.
  Script journal_append{"journal_append", "allow-oom"};
  Script journal_read{"journal_read", "no-writes"};
  Script journal_list{"journal_list", "no-writes"};
  Script journal_drop{"journal_drop", "allow-oom"};

  /// Commands that load all scripts into a server, and their number.
  std::string load() const;
  static constexpr std::size_t count = 13;
};
const Scripts& scripts();

}  // namespace idem::redis
