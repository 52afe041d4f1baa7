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

}  // namespace idem::admin
