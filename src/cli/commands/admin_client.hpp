#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace idem::cli {

/// Where an admin API is and who asks it.
struct AdminAccess {
  std::string url = "http://127.0.0.1:9901";
  std::string operator_name;  ///< Stands in the evidence log; may be empty.
};

struct AdminAnswer {
  int status = 0;
  std::string body;
};

struct AdminFailure {
  bool wrong_url = false;  ///< Otherwise: nobody answered.
  std::string why;
};

/// One request on a connection of its own, without TLS: the admin API is for this machine or for
/// what is tunnelled to it. Blocks, 30 s at most for each step. With a `body` it is a POST.
std::expected<AdminAnswer, AdminFailure> ask_admin(const AdminAccess& access,
                                                   const std::string& target,
                                                   const std::string* body);

/// As a query's value or a path's segment takes it.
std::string percent_encoded(std::string_view text);

}  // namespace idem::cli
