#pragma once

#include "json/value.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Prints JSON of the admin API as tables for people.
namespace idem::cli {

/// A scalar as text; "-" for anything else.
std::string text_of(const json::Value* value);
/// Empty if it is no array.
const json::Array& items_of(const json::Value* value);
void print_rows(const std::vector<std::vector<std::string>>& rows);

/// The text without control characters: a client's scope must not control the operator's terminal.
std::string printable(std::string_view text);

}  // namespace idem::cli
