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

/// Sends a POST with `body`, otherwise a GET, on a connection of its own. Without a token, a
/// gateway on loopback that asks for one says in which file it has put the operator's, and the
/// request is sent once more with it; the first one did nothing. Blocks for at most two minutes.
std::expected<AdminAnswer, AdminFailure> ask_admin(const AdminAccess& access,
                                                   const std::string& target,
                                                   const std::string* body);

}  // namespace idem::cli
