#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace idem::cli {

/// The admin API's URL and the operator's name.
struct AdminAccess {
  std::string url = "http://127.0.0.1:9901";
  std::string operator_name;  ///< For the evidence log; may be empty.
};

struct AdminAnswer {
  int status = 0;
  std::string body;
};

struct AdminFailure {
  bool wrong_url = false;  ///< False: there was no answer.
  std::string why;
};

/// Sends one request on its own connection: a POST with `body`, otherwise a GET. Without TLS: other
/// machines reach the admin API through a tunnel. Blocks for at most 30 s in each step.
std::expected<AdminAnswer, AdminFailure> ask_admin(const AdminAccess& access,
                                                   const std::string& target,
                                                   const std::string* body);

/// Escapes a text for a query's value or a segment of a path.
std::string percent_encoded(std::string_view text);

}  // namespace idem::cli
