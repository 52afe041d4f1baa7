#pragma once

#include "json/value.hpp"

#include <expected>
#include <initializer_list>
#include <string>
#include <string_view>

/// Members of an order, read one by one; every error says where and what to write.
namespace idem::admin {

using json::Value;
template <class T>
using Read = std::expected<T, std::string>;

std::unexpected<std::string> wrong(std::string_view where, std::string_view what);
/// The body as an object that has no other members than these.
Read<Value> read_object(std::string_view body, std::initializer_list<std::string_view> known);
/// A text that says something.
Read<std::string> read_text(const Value& object, std::string_view name, std::size_t bytes_max);

/// The source of a decision without a name.
inline constexpr std::string_view operator_source = "operator";
/// What may stand behind it: 1 to limits::operator_name_bytes_max visible characters of ASCII.
bool is_operator_name(std::string_view name) noexcept;
/// Who decides, as the evidence log calls it: `source`, which is what the head says, or the `by` of
/// the order in `body`. Two names that differ are an error.
Read<std::string> decided_by(std::string source, std::string_view body);

}  // namespace idem::admin
