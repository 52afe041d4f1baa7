#include "core/bytes/ascii.hpp"

namespace idem {

bool detail::equal_names(std::string_view a, std::string_view b) noexcept {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower_letter(a[i]) != lower_letter(b[i])) return false;
  }
  return true;
}

}  // namespace idem
