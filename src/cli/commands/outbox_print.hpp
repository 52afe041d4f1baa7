#pragma once

#include <string>

namespace idem::cli {

/// Prints answers of the admin API about messages on stdout, for people.
void print_messages(const std::string& json);
void print_message(const std::string& json);
void print_ordered(const std::string& json);

}  // namespace idem::cli
