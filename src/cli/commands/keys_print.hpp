#pragma once

#include <string>

namespace idem::cli {

/// Prints answers of the admin API on stdout, for people. False: it is no such
/// answer, and nothing was printed.
bool print_page(const std::string& json);
/// Of a search: with what the value is to each record, and with what was searched.
bool print_found(const std::string& json);
bool print_record(const std::string& json);

}  // namespace idem::cli
