#pragma once

#include <string>

namespace idem::cli {

/// Prints answers of the admin API on stdout, for people.
void print_page(const std::string& json);
void print_record(const std::string& json);

}  // namespace idem::cli
