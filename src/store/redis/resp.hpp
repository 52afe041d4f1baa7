#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The protocol of Redis, version 2 (RESP2: redis.io, "Redis serialization protocol"), without I/O.
namespace idem::redis {

struct Reply {
  enum class Kind : std::uint8_t { text, number, error, nil, list };
  Kind kind = Kind::nil;
  std::int64_t number = 0;
  std::string text;  ///< Of a text; of an error, with its code in front.
  std::vector<Reply> items;

  bool is_error(std::string_view code) const noexcept;
  /// The item at `index` of a list; nil if the list is shorter.
  const Reply& at(std::size_t index) const noexcept;
};

/// The words of an error, and what an operator does about its code, where they do not say it.
std::string error_text(const Reply& error);

/// Removes the first reply from `bytes`. None: the reply is incomplete, and `bytes` is unchanged.
/// The error is a sentence: the bytes are no reply, and the rest cannot be read either. Never reads
/// past the end; allocates no more than the received bytes call for.
std::expected<std::optional<Reply>, std::string_view> take_reply(std::string_view& bytes);

/// Appends a command in the server's format: a list of texts, each of any bytes.
class CommandWriter {
 public:
  CommandWriter(std::string& out, std::size_t arguments);
  CommandWriter& add(std::string_view argument);
  CommandWriter& add(std::int64_t number);

 private:
  std::string& out_;
};

/// A command with these arguments, its name first.
std::string command(std::span<const std::string_view> arguments);
inline std::string command(std::initializer_list<std::string_view> arguments) {
  return command(std::span(arguments.begin(), arguments.size()));
}

}  // namespace idem::redis
