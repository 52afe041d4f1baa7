#include "http/connection_login.hpp"

#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <array>

namespace idem::http {
namespace {

/// Schemes of Windows' servers and their clients; SPNEGO chooses Kerberos or NTLM.
bool is_of_connection(std::string_view credentials) noexcept {
  static constexpr std::array<std::string_view, 5> schemes{"NTLM", "Negotiate", "Kerberos",
                                                           "CredSSP", "Nego2"};
  const auto begin = credentials.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return false;
  credentials.remove_prefix(begin);
  const auto scheme = credentials.substr(0, credentials.find_first_of(" \t=,;"));
  return std::ranges::any_of(schemes, [&](std::string_view one) { return same_name(one, scheme); });
}

/// A list of challenges, whose parameters have commas, too: a part that only looks like a scheme
/// costs a connection.
bool has_one_of_connection(std::string_view challenges) noexcept {
  bool found = false;
  each_list_member(challenges,
                   [&](std::string_view one) { found = found || is_of_connection(one); });
  return found;
}

bool is_login(std::string_view name, std::string_view value) noexcept {
  return (same_name(name, "Authorization") || same_name(name, "Proxy-Authorization")) &&
         is_of_connection(value);
}

}  // namespace

bool carries_connection_login(const std::vector<FieldView>& fields) noexcept {
  return std::ranges::any_of(
      fields, [](const FieldView& field) { return is_login(field.name, field.value); });
}

bool logs_in_connection(std::string_view head) noexcept {
  for (auto end = head.find('\n'); end < head.size() - 1; end = head.find('\n', end + 1)) {
    // Few lines begin as one of the names does.
    const char first = lower_letter(head[end + 1]);
    if (first != 'a' && first != 'p') continue;
    const auto line = head.substr(end + 1, head.find('\n', end + 1) - end - 1);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (is_login(line.substr(0, colon), line.substr(colon + 1))) return true;
  }
  return false;
}

bool logs_in_connection(const std::vector<FieldView>& fields) noexcept {
  return std::ranges::any_of(fields, [](const FieldView& field) {
    // IIS tells by it that the connection keeps its user.
    if (same_name(field.name, "Persistent-Auth")) return !same_name(field.value, "false");
    return (same_name(field.name, "WWW-Authenticate") ||
            same_name(field.name, "Proxy-Authenticate")) &&
           has_one_of_connection(field.value);
  });
}

}  // namespace idem::http
