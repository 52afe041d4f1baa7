#pragma once

#include <expected>
#include <string>
#include <string_view>

/// The address of a table.
namespace idem::dynamodb {

struct Url {
  std::string table{};
  std::string region{};
  /// `http://HOST:PORT` or `https://HOST[:PORT]`, without a path.
  std::string endpoint{};
  std::string profile{};  ///< Of the shared files; empty: the environment's, or "default".
  std::string ca_file{};  ///< Empty: the certificates that the system trusts.
};

/// `dynamodb://TABLE?region=REGION`, and behind it `endpoint`, `profile`, `ca_file`,
/// percent-encoded where need be. Without a region that of AWS_REGION or AWS_DEFAULT_REGION counts,
/// without an endpoint the region's own. Opens nothing. The error is a sentence; a URL holds no
/// credentials, and one that does is refused without being repeated.
std::expected<Url, std::string> parse_url(std::string_view text);

/// A variable of the environment; empty if there is none.
std::string of_environment(const char* name);

/// Its place, for people: "TABLE in REGION", and the endpoint if it is not the region's own.
std::string place_of(const Url& url);

}  // namespace idem::dynamodb
