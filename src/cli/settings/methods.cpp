#include "cli/settings/methods.hpp"

#include <array>

namespace idem::cli {

std::span<const std::string_view> known_methods() {
  // The common ones first: of two equally near ones, the first is suggested.
  static constexpr auto methods = std::to_array<std::string_view>({"POST",
                                                                   "GET",
                                                                   "PUT",
                                                                   "DELETE",
                                                                   "PATCH",
                                                                   "HEAD",
                                                                   "OPTIONS",
                                                                   "CONNECT",
                                                                   "TRACE",
                                                                   "ACL",
                                                                   "BIND",
                                                                   "CHECKIN",
                                                                   "CHECKOUT",
                                                                   "COPY",
                                                                   "BASELINE-CONTROL",
                                                                   "LABEL",
                                                                   "LINK",
                                                                   "LOCK",
                                                                   "MERGE",
                                                                   "MKACTIVITY",
                                                                   "MKCALENDAR",
                                                                   "MKCOL",
                                                                   "MOVE",
                                                                   "MKREDIRECTREF",
                                                                   "MKWORKSPACE",
                                                                   "ORDERPATCH",
                                                                   "PROPFIND",
                                                                   "PURGE",
                                                                   "PROPPATCH",
                                                                   "QUERY",
                                                                   "REBIND",
                                                                   "REPORT",
                                                                   "SEARCH",
                                                                   "UNBIND",
                                                                   "UNCHECKOUT",
                                                                   "UNLINK",
                                                                   "UNLOCK",
                                                                   "UPDATE",
                                                                   "UPDATEREDIRECTREF",
                                                                   "VERSION-CONTROL"});
  return methods;
}

}  // namespace idem::cli
