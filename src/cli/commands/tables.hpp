#pragma once

#include "cli/terminal/table_layout.hpp"
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
/// Prints names with their values, for a person who looks at one thing.
void print_rows(const Rows& rows);
/// Prints a table whose first row has the titles. On a terminal that is too narrow the columns of
/// `may_shrink` are shortened (cli/terminal/table_layout.hpp).
void print_table(const Rows& rows, const std::vector<std::string_view>& may_shrink);

/// Prints a JSON text as a line.
void print_json(const std::string& json);

/// The text without control characters: a client's scope must not control the operator's terminal.
std::string printable(std::string_view text);

}  // namespace idem::cli
