#include "store/dynamodb/credentials.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/record/store_clock.hpp"
#include "json/value.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace idem::dynamodb {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view blanks = " \t\r";

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream all;
  all << file.rdbuf();
  return std::move(all).str();
}

std::string text_of(const json::Value& value, std::string_view name) {
  const json::Value* const found = value.find(name);
  const auto* const text = found != nullptr ? std::get_if<std::string>(&found->is) : nullptr;
  return text != nullptr ? *text : std::string();
}

/// Options that lead to other sources; ignoring one would use another identity than the profile's.
constexpr std::string_view not_followed[] = {"role_arn", "credential_process", "sso_session",
                                             "sso_start_url", "web_identity_token_file"};

std::string host_in(std::string_view url) {
  url.remove_prefix(std::min(url.size(), url.find("://") + 3));
  url = url.substr(0, url.find('/'));
  if (url.starts_with('[')) return std::string(url.substr(0, url.find(']') + 1));
  return std::string(url.substr(0, url.find(':')));
}

std::string or_else(std::string value, std::string other) {
  return value.empty() ? std::move(other) : std::move(value);
}

}  // namespace

std::expected<std::optional<Credentials>, std::string> credentials_in(std::string_view file,
                                                                      std::string_view profile,
                                                                      bool is_config) {
  const bool is_plain = !is_config || profile == "default";
  const std::string wanted = is_plain ? std::string(profile) : "profile " + std::string(profile);
  Credentials found;
  bool is_in = false;
  while (!file.empty()) {
    const std::string_view line = trimmed(take_until(file, '\n'), blanks);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      is_in = trimmed(line.substr(1, line.find(']') - 1), blanks) == wanted;
      continue;
    }
    const auto equals = line.find('=');
    if (!is_in || equals == line.npos) continue;
    const std::string_view name = trimmed(line.substr(0, equals), blanks);
    const std::string value(trimmed(line.substr(equals + 1), blanks));
    if (name == "aws_access_key_id") found.key_id = value;
    if (name == "aws_secret_access_key") found.secret = value;
    if (name == "aws_session_token") found.session_token = value;
    if (std::ranges::find(not_followed, name) != std::end(not_followed)) {
      return std::unexpected("the profile " + std::string(profile) + " has " + std::string(name) +
                             ", which Idem does not follow; give keys, or run with a role of the "
                             "container or the machine");
    }
  }
  if (found.key_id.empty() || found.secret.empty()) return std::nullopt;
  return found;
}

CredentialsResult parse_issued(std::string_view text) {
  const auto parsed = json::parse(text);
  if (!parsed) return std::unexpected("the source of credentials answered no JSON");
  Credentials found{text_of(*parsed, "AccessKeyId"), text_of(*parsed, "SecretAccessKey"),
                    text_of(*parsed, "Token"), parse_rfc3339(text_of(*parsed, "Expiration"))};
  if (found.key_id.empty() || found.secret.empty()) {
    return std::unexpected("the source of credentials answered without a key");
  }
  return found;
}

bool is_local_url(std::string_view url) {
  constexpr std::string_view hosts[] = {"127.0.0.1",       "localhost",      "[::1]",
                                        "169.254.170.2",   "169.254.170.23", "169.254.169.254",
                                        "[fd00:ec2::254]", "[fd00:ec2::23]"};
  return std::ranges::find(hosts, host_in(url)) != std::end(hosts);
}

CredentialChain::CredentialChain(Loop& loop, Transfers& transfers, std::string profile,
                                 Environment environment)
    : loop_(loop),
      transfers_(transfers),
      profile_(std::move(profile)),
      environment_(std::move(environment)) {}

Task<CredentialsResult> CredentialChain::get() {
  const auto is_good = [this](Millis margin) {
    return kept_ && (!kept_->expires || wall_time() + margin < *kept_->expires);
  };
  while (!is_good(limits::dynamodb_credentials_margin)) {
    if (MonotonicClock::now() < fetch_again_) {
      if (is_good(0ms)) break;
      co_return std::unexpected(why_);
    }
    if (is_fetching_) {
      if (is_good(0ms)) break;
      Task<void> pausing = loop_.sleep(limits::store_repeat_interval);
      co_await std::move(pausing);
      continue;
    }
    is_fetching_ = true;
    Task<CredentialsResult> fetching = fetch();
    CredentialsResult fetched = co_await std::move(fetching);
    is_fetching_ = false;
    fetch_again_ = MonotonicClock::now() + limits::dynamodb_credentials_pause;
    if (fetched) {
      kept_ = std::move(*fetched);
      break;
    }
    why_ = "there are no credentials: " + fetched.error();
  }
  co_return *kept_;
}

void CredentialChain::reject() {
  if (is_fetching_ || MonotonicClock::now() < fetch_again_) return;
  kept_.reset();
}

CredentialsResult CredentialChain::of_files(bool& is_configured) const {
  is_configured = false;
  const std::string profile = or_else(profile_, or_else(environment_("AWS_PROFILE"), "default"));
  const std::string home = environment_("HOME") + "/.aws/";
  const std::pair<std::string, bool> files[] = {
      {or_else(environment_("AWS_SHARED_CREDENTIALS_FILE"), home + "credentials"), false},
      {or_else(environment_("AWS_CONFIG_FILE"), home + "config"), true}};
  for (const auto& [path, is_config] : files) {
    const auto content = content_of(path);
    if (!content) continue;
    auto found = credentials_in(*content, profile, is_config);
    if (found && !*found) continue;
    is_configured = true;
    if (!found) return std::unexpected(std::move(found.error()));
    return std::move(**found);
  }
  // A profile that someone names must be there: another identity would be used otherwise.
  is_configured = !profile_.empty() || !environment_("AWS_PROFILE").empty();
  return std::unexpected("no shared file has keys for the profile " + profile);
}

Task<CredentialsResult> CredentialChain::fetch() {
  Credentials found{environment_("AWS_ACCESS_KEY_ID"), environment_("AWS_SECRET_ACCESS_KEY"),
                    environment_("AWS_SESSION_TOKEN")};
  if (profile_.empty() && !found.key_id.empty() && !found.secret.empty()) co_return found;
  bool is_configured = false;
  CredentialsResult filed = of_files(is_configured);
  if (is_configured) co_return filed;
  std::string url = environment_("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  const std::string relative = environment_("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!relative.empty()) url = "http://169.254.170.2" + relative;
  if (!url.empty()) {
    Task<CredentialsResult> asking = of_container(std::move(url));
    co_return co_await std::move(asking);
  }
  if (environment_("AWS_EC2_METADATA_DISABLED") == "true") {
    co_return std::unexpected("neither the environment nor a shared file has any");
  }
  Task<CredentialsResult> asking = of_instance();
  co_return co_await std::move(asking);
}

Task<std::expected<std::string, std::string>> CredentialChain::ask(HttpRequest request) {
  request.patience = limits::dynamodb_credentials_max;
  Task<HttpResult> asking = transfers_.ask(std::move(request));
  HttpResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(std::move(answer.error().why));
  if (answer->status != 200) {
    co_return std::unexpected("the status is " + std::to_string(answer->status));
  }
  co_return std::move(answer->body);
}

Task<CredentialsResult> CredentialChain::of_container(std::string url) {
  if (!url.starts_with("https://") && !is_local_url(url)) {
    co_return std::unexpected(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI is plain http to a host that is not this machine's");
  }
  HttpRequest request{.method = "GET", .url = std::move(url)};
  std::string token = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  const std::string path = environment_("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!path.empty()) {
    const auto content = content_of(path);  // Read each time: it is replaced as it expires.
    if (!content) {
      co_return std::unexpected("cannot read the container's token in " + path +
                                " (AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE): let this user read it");
    }
    token = trimmed(std::string_view(*content).substr(0, content->find('\n')), blanks);
  }
  if (token.find_first_of("\r\n") != token.npos) {
    co_return std::unexpected("the container's authorization token has more than one line");
  }
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  auto asking = ask(std::move(request));
  const auto answer = co_await std::move(asking);
  if (!answer) {
    co_return std::unexpected("the container's endpoint gives none: " + answer.error());
  }
  co_return parse_issued(*answer);
}

Task<CredentialsResult> CredentialChain::of_instance() {
  const std::string base =
      or_else(environment_("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254") +
      "/latest/";
  HttpRequest request{.method = "PUT", .url = base + "api/token"};
  request.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  auto asking_token = ask(std::move(request));
  const auto token = co_await std::move(asking_token);
  if (!token) {
    co_return std::unexpected(
        "neither the environment, nor a shared file, nor a container has any, and the instance's "
        "metadata give none: " +
        token.error());
  }
  const std::string field = "X-aws-ec2-metadata-token: " + *token;
  const std::string roles = base + "meta-data/iam/security-credentials/";
  HttpRequest listing{.method = "GET", .url = roles};
  listing.headers = {field};
  auto asking_role = ask(std::move(listing));
  const auto role = co_await std::move(asking_role);
  if (!role) co_return std::unexpected("the instance has no role: " + role.error());
  HttpRequest last{.method = "GET",
                   .url = roles + std::string(trimmed(role->substr(0, role->find('\n')), blanks))};
  last.headers = {field};
  auto asking = ask(std::move(last));
  const auto answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected("the instance's role gives none: " + answer.error());
  co_return parse_issued(*answer);
}

}  // namespace idem::dynamodb
