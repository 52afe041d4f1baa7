#include "http/alike.hpp"

#include "core/bytes/ascii.hpp"

#include <algorithm>

namespace idem::http::detail {
namespace {

bool counts(char c) noexcept { return is_char(c, char_letter | char_digit); }

}  // namespace

bool alike(std::string_view a, std::string_view b) noexcept {
  for (;;) {
    a.remove_prefix(static_cast<std::size_t>(std::ranges::find_if(a, counts) - a.begin()));
    b.remove_prefix(static_cast<std::size_t>(std::ranges::find_if(b, counts) - b.begin()));
    if (a.empty() || b.empty()) return a.empty() && b.empty();
    if (lower_letter(a.front()) != lower_letter(b.front())) return false;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
}

}  // namespace idem::http::detail
