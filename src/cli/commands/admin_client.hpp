#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace idem::cli {

/// Where the admin API is, and how this user logs in there.
struct AdminAccess {
  std::string url = "http://127.0.0.1:9901";
  std::string operator_name{};     ///< For the evidence log; may be empty.
  std::string token{};             ///< Empty: that of `token_file`.
  std::string token_file{};        ///< Empty: the file that a gateway on this machine names.
  std::string ca_file{};           ///< PEM; empty: the system's authorities.
  std::string certificate_file{};  ///< PEM; empty: none is presented.
  std::string key_file{};
};

struct AdminAnswer {
  int status = 0;
  std::string body;
};

struct AdminFailure {
  enum class Kind : std::uint8_t { wrong_url, wrong_token, no_answer };
  Kind kind = Kind::no_answer;
  std::string why;
};

/// Sends a POST with `body`, otherwise a GET, on a connection of its own. Without a login it asks a
/// listener on loopback first; a gateway names the file in which it has put the operator's token.
/// That token is sent only where the file's owner is the user who listens there. Blocks for at most
/// two minutes in each of the two requests.
std::expected<AdminAnswer, AdminFailure> ask_admin(const AdminAccess& access,
                                                   const std::string& target,
                                                   const std::string* body);

}  // namespace idem::cli
