#pragma once

#include "admin/login/role.hpp"
#include "json/value.hpp"

#include <expected>
#include <initializer_list>
#include <string>
#include <string_view>

/// Reads the members of an order one by one. Every error names the place and says what to write.
namespace idem::admin {

using json::Value;
template <class T>
using Read = std::expected<T, std::string>;

std::unexpected<std::string> wrong(std::string_view where, std::string_view what);
/// The body as an object; other members than `known` are an error.
Read<Value> read_object(std::string_view body, std::initializer_list<std::string_view> known);
/// A text that is not only white space.
Read<std::string> read_text(const Value& object, std::string_view name, std::size_t bytes_max);

/// `reason`, in which nobody may write what only a job or an approval adds to it: by these notes a
/// process finds out whether a decision was made (jobs/job.hpp, order_body.hpp).
Read<std::string> read_reason(const Value& object);
/// An order that holds a reason and nothing else.
Read<std::string> parse_reason(std::string_view body);

/// The source of an operator's decision, in front of the name.
inline constexpr std::string_view operator_source = "operator";
/// The decider as the evidence log names it: `source`, by the login or from the request's head, or
/// the member `by` of the order in `body`. Two different names are an error, and so is none.
Read<std::string> decided_by(std::string source, std::string_view body);

}  // namespace idem::admin
