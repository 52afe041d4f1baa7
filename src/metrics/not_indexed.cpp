#include "metrics/not_indexed.hpp"

namespace idem::metrics {

std::string_view name_of(NotIndexed reason) noexcept {
  switch (reason) {
    case NotIndexed::waiting_full:
      return "waiting_full";
    case NotIndexed::store_failed:
      return "store_failed";
    case NotIndexed::value_common:
      return "value_common";
    case NotIndexed::value_too_long:
      return "value_too_long";
    case NotIndexed::body_too_large:
      return "body_too_large";
    case NotIndexed::body_not_kept:
      return "body_not_kept";
    case NotIndexed::body_no_json:
      return "body_no_json";
  }
  return "store_failed";
}

}  // namespace idem::metrics
