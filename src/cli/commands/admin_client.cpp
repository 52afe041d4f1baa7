#include "cli/commands/admin_client.hpp"

#include "admin/login/tokens.hpp"
#include "cli/commands/listener_owner.hpp"
#include "cli/commands/tables.hpp"
#include "cli/settings/addresses.hpp"
#include "http/upstream_pool.hpp"
#include "json/value.hpp"
#include "webhook/fetch.hpp"

#include <idem/limits.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace idem::cli {
namespace {

using Failed = std::unexpected<AdminFailure>;
using FailureKind = AdminFailure::Kind;

// A listing of a large store, each of whose bodies is read on its own.
constexpr Millis time_max = std::chrono::minutes(2);
// The largest stored answer in base64, with its record.
constexpr std::size_t answer_bytes_max = limits::request_body_bytes_cap * 2;

Failed wrong_token(std::string why) {
  return Failed(AdminFailure{FailureKind::wrong_token, std::move(why)});
}

struct Token {
  std::string text;
  std::uint32_t owner = 0;  ///< The user whose file it lies in.
};

/// The token of a file that only its user can read.
std::expected<Token, AdminFailure> read_token(const std::string& path) {
  const auto file =
      admin::read_small_file(path, admin::Others::may_nothing, limits::admin_token_file_bytes_max,
                             admin::Owner::anyones_for_root);
  if (!file) return wrong_token(file.error());
  if (!*file) return wrong_token(path + ": there is no such file");
  Token token{(*file)->content, (*file)->owner};
  while (token.text.ends_with('\n') || token.text.ends_with('\r') || token.text.ends_with(' ')) {
    token.text.pop_back();
  }
  if (!admin::is_token(token.text)) return wrong_token(path + ": holds no token of the admin API");
  return token;
}

/// The token of the file that the listener on `port` named. Anyone on this machine may listen there
/// while the gateway does not, and name the gateway's file: so the listener must be the file's
/// owner.
std::expected<Token, AdminFailure> read_named_token(const std::string& path,
                                                    const std::string& port) {
  const auto owners = listeners_on(port);
  if (!path.starts_with('/')) return wrong_token(path + ": is no absolute path");
  auto token = read_token(path);
  if (!token) return token;
  if (owners != std::set<std::uint32_t>{token->owner}) {
    return wrong_token(path + ": belongs to another user than what listens on port " + port +
                       "; is that the gateway?");
  }
  return token;
}

/// Whether only this user or root listens on `port`.
bool is_own_listener(const std::string& port) {
  const auto owners = listeners_on(port);
  return !owners.empty() && std::ranges::all_of(owners, [](std::uint32_t owner) {
    return owner == 0 || owner == geteuid();
  });
}

/// The file that a refusal names; empty: none.
std::string named_file(const AdminAnswer& answer) {
  if (answer.status != 401) return {};
  const auto problem = json::parse(answer.body);
  const auto* const member = problem ? problem->find("token_file") : nullptr;
  const auto* const file = member != nullptr ? std::get_if<std::string>(&member->is) : nullptr;
  return file != nullptr ? *file : std::string();
}

/// Of a URL that was copied from a browser.
std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::expected<AdminAnswer, AdminFailure> send(const AdminAccess& access, const std::string& target,
                                              const std::string* body, const std::string& token) {
  FetchRequest request{.url = without_slash(access.url) + target,
                       .timeout = time_max,
                       .max_bytes = answer_bytes_max,
                       .ca_file = access.ca_file,
                       .certificate_file = access.certificate_file,
                       .key_file = access.key_file};
  if (const auto host = fetch_host_of(access.url)) request.allowed_hosts = {*host};
  if (!token.empty()) request.headers.push_back({"Authorization", "Bearer " + token});
  if (body != nullptr) {
    request.method = "POST";
    request.body = *body;
    request.headers.push_back({"Idem-Operator", access.operator_name});
    request.headers.push_back({"Content-Type", "application/json"});
  }
  Fetcher fetcher;
  auto answer = fetcher.fetch(request);
  if (answer) return AdminAnswer{answer->status, std::move(answer->body)};
  const FetchError& error = answer.error();
  if (error.kind != FetchError::Kind::refused_by_rule) {
    return Failed(AdminFailure{FailureKind::no_answer, error.why});
  }
  if (!error.sent) return Failed(AdminFailure{FailureKind::wrong_url, error.why});
  return Failed(AdminFailure{FailureKind::no_answer, "the server there does not answer in HTTP"});
}

}  // namespace

std::expected<AdminAnswer, AdminFailure> ask_admin(const AdminAccess& access,
                                                   const std::string& target,
                                                   const std::string* body) {
  const auto address = http::parse_upstream_url(access.url);
  if (!address) {
    return Failed(AdminFailure{FailureKind::wrong_url,
                               "\"" + printable(access.url) +
                                   "\" is no URL of an admin listener; write one such as "
                                   "http://127.0.0.1:9901"});
  }
  if (!access.token.empty()) {
    if (access.token.find_first_of(" \t\r\n") != std::string::npos) {
      return wrong_token("IDEM_ADMIN_TOKEN has a blank or the end of a line in it");
    }
    return send(access, target, body, access.token);
  }
  if (!access.token_file.empty()) {
    const auto token = read_token(access.token_file);
    if (!token) return Failed(token.error());
    return send(access, target, body, token->text);
  }
  const auto& [host, port] = address->endpoint;
  const bool is_here = is_loopback((host.contains(':') ? "[" + host + "]" : host) + ":" + port);
  if (!is_here || !access.certificate_file.empty()) return send(access, target, body, "");
  // Anyone on this machine may listen there while the gateway does not. No order goes to such a
  // listener, and what it says is not believed: a gateway asks for a login.
  auto asked = send(access, body != nullptr ? "/v1/status" : target, nullptr, "");
  if (!asked) return asked;
  const std::string file = named_file(*asked);
  if (file.empty()) {
    if (asked->status == 401) return asked;
    if (!is_own_listener(port)) {
      return wrong_token("what listens on port " + port +
                         " asks for no login, and belongs to another user; is that the gateway?");
    }
    return body != nullptr ? send(access, target, body, "") : asked;
  }
  const auto token = read_named_token(file, port);
  if (!token) return Failed(token.error());
  return send(access, target, body, token->text);
}

}  // namespace idem::cli
