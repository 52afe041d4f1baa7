#pragma once

#include "json/value.hpp"

#include <string>
#include <string_view>
#include <vector>

/// JSON of the admin API as tables for people.
namespace idem::cli {

/// "-" where there is nothing.
std::string text_of(const json::Value* value);
/// Empty where it is no array.
const json::Array& items_of(const json::Value* value);
void print_rows(const std::vector<std::vector<std::string>>& rows);

/// Without control characters: what a client put into a scope must not drive the operator's
/// terminal.
std::string printable(std::string_view text);

}  // namespace idem::cli
