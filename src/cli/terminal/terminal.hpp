#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// What a command may assume about the terminal that shows its output (docs/commands.md).
namespace idem::cli {

/// What a text means to its reader. Its words say the same: a colour is never the only sign.
enum class Tone : std::uint8_t { plain, good, warning, bad };

/// Columns of the terminal behind a file descriptor: what the terminal says, or else the variable
/// COLUMNS, or else 80. None: it is no terminal, so that nothing may be shortened.
std::optional<std::size_t> terminal_columns(int descriptor);

/// Whether a line behind a file descriptor can be written again.
bool can_rewrite_lines(int descriptor);

/// Whether text behind a file descriptor may have colours: a terminal, unless NO_COLOR is set and
/// not empty, or TERM is unset or dumb.
bool has_colours(int descriptor);

/// `text` in the colour of `tone`, where the descriptor has colours.
std::string in_tone(const std::string& text, Tone tone, int descriptor);
/// The same, where the caller knows.
std::string in_tone(const std::string& text, Tone tone, bool colours);

}  // namespace idem::cli
