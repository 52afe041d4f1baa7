#pragma once

#include "store/dynamodb/transfers.hpp"

#include <functional>
#include <string>
#include <string_view>

/// Where the credentials come from, in the order in which the AWS SDKs look: the environment, the
/// shared files, the container's endpoint (ECS, EKS Pod Identity), the instance's metadata
/// (IMDSv2). The first source that is configured counts; an error of it is an error, so that a
/// broken role never falls back to another identity. Nothing here is logged or put into an error.
namespace idem::dynamodb {

struct Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token{};         ///< Empty: none.
  std::optional<StoreTime> expires{};  ///< By the issuer's clock. None: never.
};
using CredentialsResult = std::expected<Credentials, std::string>;

/// The shared files' section `profile`. `is_config`: there its name is "profile NAME". None: there
/// is no such section, or it has no key. The error names an option that Idem does not follow.
std::expected<std::optional<Credentials>, std::string> credentials_in(std::string_view file,
                                                                      std::string_view profile,
                                                                      bool is_config);
/// The answer of the container's or the instance's endpoint.
CredentialsResult parse_issued(std::string_view json);
/// Whether plain http to this URL stays on the machine: loopback, and the link-local addresses of
/// ECS and EKS.
bool is_local_url(std::string_view url);

/// Loop's thread only.
class CredentialChain {
 public:
  using Environment = std::function<std::string(const char* name)>;

  /// `profile`: the URL's; it takes the place of the environment's keys. Empty: none.
  CredentialChain(Loop& loop, Transfers& transfers, std::string profile, Environment environment);

  /// The current ones; fetched again before they expire. While the new ones cannot be fetched, the
  /// old ones serve until they expire. The error is a sentence.
  Task<CredentialsResult> get();
  /// The service does not accept them: reads them again, at most every few seconds.
  void reject();

 private:
  Task<CredentialsResult> fetch();
  CredentialsResult of_files(bool& is_configured) const;
  Task<CredentialsResult> of_container(std::string url);
  Task<CredentialsResult> of_instance();
  Task<std::expected<std::string, std::string>> ask(HttpRequest request);

  Loop& loop_;
  Transfers& transfers_;
  std::string profile_;
  Environment environment_;
  std::optional<Credentials> kept_;
  std::string why_;  ///< Why the last fetch failed.
  bool is_fetching_ = false;
  MonotonicTime fetch_again_{};
};

}  // namespace idem::dynamodb
