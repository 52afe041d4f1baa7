#include "admin/links.hpp"

#include "core/bytes/percent.hpp"

namespace idem::admin {

std::optional<std::string> filled(std::string_view address, std::string_view place,
                                  std::string_view value) {
  const auto at = address.find(place);
  if (at == address.npos || value.empty()) return std::nullopt;
  return std::string(address.substr(0, at)) + percent_encoded(value) +
         std::string(address.substr(at + place.size()));
}

}  // namespace idem::admin
