#pragma once

#include <string>

namespace idem::cli {

/// What the admin API answers, as a person reads it, on stdout.
void print_page(const std::string& json);
void print_record(const std::string& json);

}  // namespace idem::cli
