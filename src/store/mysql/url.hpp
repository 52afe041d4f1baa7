#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

/// The address of a database, and the credentials for it.
namespace idem::mysql {

struct Host {
  std::string name{};
  std::uint16_t port = 3306;
};

struct Url {
  std::vector<Host> hosts{};  ///< In the order in which they are tried.
  std::string user{};
  std::string password{};
  std::string database{};
  std::string ca_file{};    ///< Not empty: TLS, and the server must show a certificate of it.
  std::string cert_file{};  ///< Ours, with `key_file`; empty: none.
  std::string key_file{};
};

/// `mysql://USER[:PASSWORD]@HOST[:PORT][,HOST[:PORT]]/DATABASE`. Behind a `?`: `password_file`,
/// `ca_file`, `cert_file`, `key_file`. Percent-encoded where need be. Reads the password's file.
/// The error is a sentence that repeats nothing that may be a password.
std::expected<Url, std::string> parse_url(std::string_view text);

/// For people: HOST:PORT/DATABASE.
std::string place_of(const Url& url, const Host& host);

}  // namespace idem::mysql
