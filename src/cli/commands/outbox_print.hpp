#pragma once

#include <string>

namespace idem::cli {

/// Prints answers of the admin API about messages on stdout, for people. False: it is no such
/// answer, and nothing was printed.
bool print_messages(const std::string& json);
bool print_message(const std::string& json);
bool print_ordered(const std::string& json);

}  // namespace idem::cli
