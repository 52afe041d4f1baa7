#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// A place at which two documents differ. The values are not shown: only their kinds, and how long
/// they are.
struct JsonDifference {
  std::string pointer;  ///< RFC 6901; empty: the whole document.
  std::string before;
  std::string after;
};

/// What may be shown of a value that nobody may see: "string, 12 characters", "array, 3 items",
/// "object, 2 members", "number", "boolean", "null". `form` is a fingerprint_form().
std::string masked(std::string_view form);

/// The places at which two documents differ, the deepest ones, in the order of their names; at most
/// `most`. Both are fingerprint_form()s, so that two spellings of one value do not differ. A value
/// that one document lacks is "absent" there. `counts(pointer)`: false leaves the value at that
/// place out, with all below it.
std::vector<JsonDifference> json_differences(std::string_view before, std::string_view after,
                                             std::size_t most,
                                             const std::function<bool(const std::string&)>& counts);

/// A document that is an object, once for each member without that member.
struct WithoutMember {
  std::string pointer;     ///< Of the member.
  std::string_view value;  ///< Of the member, in the form.
  std::string text;        ///< Without it.
};
/// Empty for other documents, and for one with more than `most` members.
std::vector<WithoutMember> without_each_member(std::string_view form, std::size_t most);

}  // namespace idem
