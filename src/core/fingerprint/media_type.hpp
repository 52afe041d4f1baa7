#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// `type/subtype` of a Content-Type, in lower case (RFC 9110 §8.3.1). Never fails: a text that is
/// no media type is returned in lower case.
std::string media_type(std::string_view content_type);

struct MediaParameter {
  std::string name;  ///< In lower case.
  std::string value;
};

/// The parameters in their order, without the quotes of their values (RFC 9110 §5.6.6). None if
/// they do not follow the grammar.
std::optional<std::vector<MediaParameter>> media_parameters(std::string_view content_type);

}  // namespace idem
