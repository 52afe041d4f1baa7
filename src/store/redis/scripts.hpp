#pragma once

#include "store/redis/resp.hpp"

#include <span>
#include <string>
#include <string_view>

/// What runs in the server, as one atomic step each (schema/redis).
namespace idem::redis {

struct ScriptText {
  std::string_view name;
  std::string_view text;
};
std::span<const ScriptText> texts() noexcept;

class Script {
 public:
  /// `flags`: of Redis's script flags, empty for none. One that adds nothing to what there is may
  /// run where the memory is full.
  Script(std::string_view name, std::string_view flags);

  const std::string& text() const noexcept { return text_; }

  /// Begins a call of it about `key`; `arguments` more are to follow.
  CommandWriter call(std::string& out, std::string_view key, std::size_t arguments) const;

 private:
  std::string text_;
  std::string digest_;  ///< SHA-1, in hexadecimal: the server's name for it.
};

struct Scripts {
  Script reserve{"commit", ""};
  /// What ends or keeps an attempt: its answer must find room.
  Script settle{"commit", "allow-oom"};
  Script look{"look", "no-writes"};
  Script close{"close", "allow-oom"};
  Script open{"open", "allow-oom"};
  Script swap{"swap", "allow-oom"};
  Script cache_put{"cache_put", ""};

  /// Commands that make all of them known to a server, and how many these are.
  std::string load() const;
  static constexpr std::size_t count = 7;
};
const Scripts& scripts();

}  // namespace idem::redis
