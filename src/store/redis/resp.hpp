#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The protocol of Redis, version 2 (RESP2, redis.io "Redis serialization protocol"), without I/O.
namespace idem::redis {

struct Reply {
  enum class Kind : std::uint8_t { text, number, error, nil, list };
  Kind kind = Kind::nil;
  std::int64_t number = 0;
  std::string text;  ///< Of a text, or of an error with its code before it.
  std::vector<Reply> items;

  bool is_error(std::string_view code) const noexcept;
  /// What stands at `index` of a list; nil where the list is shorter.
  const Reply& at(std::size_t index) const noexcept;
};

/// The first reply of `bytes`, which is cut off there; none: it is not all there yet, and nothing
/// was taken. The error is a sentence: what follows cannot be understood any more. Never reads past
/// the end; what it allocates is bounded by what has arrived.
std::expected<std::optional<Reply>, std::string_view> take_reply(std::string_view& bytes);

/// Appends a command as the server takes it: a list of texts, each of any bytes.
class CommandWriter {
 public:
  CommandWriter(std::string& out, std::size_t arguments);
  CommandWriter& add(std::string_view argument);
  CommandWriter& add(std::int64_t number);

 private:
  std::string& out_;
};

/// A command by its words.
std::string command(std::span<const std::string_view> words);
inline std::string command(std::initializer_list<std::string_view> words) {
  return command(std::span(words.begin(), words.size()));
}

}  // namespace idem::redis
