#include "core/exchange/explanation.hpp"

namespace idem {

std::string_view name_of(Explanation::Outcome outcome) noexcept {
  using enum Explanation::Outcome;
  switch (outcome) {
    case execute:
      return "execute";
    case replay:
      return "replay";
    case in_progress:
      return "in_progress";
    case misuse:
      return "misuse";
    case unknown:
      return "unknown";
    case expired:
      return "expired";
    case refused:
      return "refused";
    case pass:
      return "pass";
  }
  return "";
}

}  // namespace idem
