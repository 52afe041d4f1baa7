#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

/// The address of a Redis, and its credentials.
namespace idem::redis {

struct Address {
  std::string host{};
  std::uint16_t port = 6379;
  auto operator<=>(const Address&) const = default;
};

/// "HOST:PORT", "[::1]:PORT", or a host alone, which gets `port`.
std::expected<Address, std::string> parse_address(std::string_view text, std::uint16_t port);

struct Login {
  std::string user{};
  std::string password{};
};

struct Tls {
  bool on = false;
  std::string ca_file{};    ///< Empty: those that the system trusts.
  std::string cert_file{};  ///< Ours, with `key_file`; empty: none.
  std::string key_file{};
};

enum class Layout : std::uint8_t { one, cluster, sentinel };

struct Url {
  Layout layout = Layout::one;
  std::vector<Address> hosts{};
  Login login{};
  Login sentinel_login{};
  Tls tls{};
  int database = 0;
  std::string master{};         ///< Its name at the sentinels.
  std::string prefix = "idem";  ///< Of all our keys.
};

/// `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://` for TLS;
/// `redis+cluster://HOST,HOST/`; `redis+sentinel://HOST,HOST/MASTER[/DATABASE]`, also with
/// `rediss`. Behind a `?`: `prefix`, `password_file`, `ca_file`, `cert_file`, `key_file`,
/// `sentinel_password_file`. Percent-encoded where need be. Reads the files. The error is a
/// sentence that repeats nothing that may be a password.
std::expected<Url, std::string> parse_url(std::string_view text);

/// Its place, for people: HOST:PORT,HOST:PORT/DATABASE prefix=PREFIX, without a password.
std::string place_of(const Url& url);

}  // namespace idem::redis
