#include "store/named_values.hpp"

namespace idem {

std::optional<std::string> parameter_mismatch(const std::set<std::size_t>& named,
                                              std::size_t values) {
  for (const std::size_t number : named) {
    if (number >= 1 && number <= values) continue;
    return "no value for the parameter $" + std::to_string(number) + ": " + std::to_string(values) +
           (values == 1 ? " value was given" : " values were given");
  }
  for (std::size_t number = 1; number <= values; ++number) {
    if (named.contains(number)) continue;
    return "the statement does not name value " + std::to_string(number) + " of " +
           std::to_string(values) + ": write $" + std::to_string(number) + " in it, or leave the " +
           "value out";
  }
  return std::nullopt;
}

}  // namespace idem
