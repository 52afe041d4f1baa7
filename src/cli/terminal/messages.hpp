#pragma once

#include <string>
#include <string_view>

/// What commands say to a person on stderr, in one form: "idem COMMAND: sentence; what to do".
namespace idem::cli {

/// Prints why `command` ends, such as "keys", and returns `code`. "": the program itself. On a
/// terminal the part before the sentence is red.
int say_error(std::string_view command, const std::string& sentence, int code);

/// The same of another program than `idem`, or of a command with a name of its own.
int say_error_of(std::string_view program, const std::string& sentence, int code);

/// What say_error() prints.
std::string error_line(std::string_view command, const std::string& sentence);

/// Prints a line that may have ": warning: " in it, whose word is yellow on a terminal. "": without
/// "idem COMMAND: ".
void say_warning(std::string_view command, const std::string& line);

}  // namespace idem::cli
