#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Words in messages.
namespace idem::config {

/// `text` in quotes, escaped, and cut when it is long.
std::string shown(std::string_view text);

/// `url` as it may be shown: with *** where a password stands. It is still a URL.
std::string without_password(std::string_view url);
/// `sentence`, in which a URL is quoted, also a malformed one, likewise.
std::string without_quoted_password(std::string sentence);

/// "a, b or c".
std::string alternatives(std::span<const std::string_view> words);

/// The parts of "a|b|c".
std::vector<std::string_view> split(std::string_view text, char separator);

/// The word that `wrong` was probably meant to be: the nearest one within about a third of its
/// letters (insertions, deletions, replacements, swaps of neighbours); empty when none is near.
std::string_view nearest(std::string_view wrong, std::span<const std::string_view> words);

/// "; did you mean WORD?", or nothing.
std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> words);

}  // namespace idem::config
