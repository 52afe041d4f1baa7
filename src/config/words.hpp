#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Parts of messages, and suggestions for misspelt words.
namespace idem::config {

/// `text` in quotes, escaped, and cut when it is long.
std::string shown(std::string_view text);

/// `url` with *** in place of a password. It is still a URL.
std::string without_password(std::string_view url);
/// The same for a URL, also a malformed one, that `sentence` quotes.
std::string without_quoted_password(std::string sentence);

/// "a, b or c".
std::string alternatives(std::span<const std::string_view> words);

/// The parts of "a|b|c".
std::vector<std::string_view> split(std::string_view text, char separator);

/// The word that `wrong` probably means: the nearest one within about a third of its letters
/// (insertions, deletions, replacements, swaps of neighbours). Empty: none is near.
std::string_view nearest(std::string_view wrong, std::span<const std::string_view> words);

/// "; did you mean WORD?", or nothing.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> words);

}  // namespace idem::config
