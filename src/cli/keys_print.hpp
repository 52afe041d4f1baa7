#pragma once

#include <string>
#include <string_view>

namespace idem::cli {

/// What the admin API answers, as a person reads it, on stdout.
void print_page(const std::string& json);
void print_record(const std::string& json);

/// Without control characters: what a client put into a scope must not drive the operator's
/// terminal.
std::string printable(std::string_view text);

}  // namespace idem::cli
