#pragma once

#include <string>

namespace idem::cli {

/// What the admin API answers about messages, as a person reads it, on stdout.
void print_messages(const std::string& json);
void print_message(const std::string& json);
void print_ordered(const std::string& json);

}  // namespace idem::cli
