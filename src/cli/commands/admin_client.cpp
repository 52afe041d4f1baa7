#include "cli/commands/admin_client.hpp"

#include "admin/login/tokens.hpp"
#include "cli/commands/tables.hpp"
#include "cli/settings/addresses.hpp"
#include "http/upstream_pool.hpp"
#include "json/value.hpp"
#include "webhook/fetch.hpp"

#include <idem/limits.hpp>

#include <chrono>

namespace idem::cli {
namespace {

using Failed = std::unexpected<AdminFailure>;
using Kind = AdminFailure::Kind;

// A listing of a large store, each of whose bodies is read on its own.
constexpr Millis time_max = std::chrono::minutes(2);
// The largest stored answer in base64, with its record.
constexpr std::size_t answer_bytes_max = limits::request_body_bytes_cap * 2;

/// The token of a file that only its user can read. A server that listens in the gateway's place
/// must not make this user send it another file: so it has the form of a token, or is not sent.
std::expected<std::string, AdminFailure> read_token(const std::string& path) {
  const auto file =
      admin::read_small_file(path, admin::Others::may_nothing, limits::admin_token_file_bytes_max,
                             admin::Owner::anybody_for_root);
  if (!file) return Failed(AdminFailure{Kind::wrong_token, file.error()});
  std::string token = *file ? (*file)->content : std::string();
  while (token.ends_with('\n') || token.ends_with('\r') || token.ends_with(' ')) token.pop_back();
  if (!admin::is_token(token)) {
    return Failed(AdminFailure{Kind::wrong_token, path + ": holds no token of the admin API"});
  }
  return token;
}

/// The file that a refusal names; empty: none.
std::string named_file(const AdminAnswer& answer) {
  if (answer.status != 401) return {};
  const auto problem = json::parse(answer.body);
  const auto* const member = problem ? problem->find("token_file") : nullptr;
  const auto* const file = member != nullptr ? std::get_if<std::string>(&member->is) : nullptr;
  return file != nullptr ? *file : std::string();
}

std::expected<AdminAnswer, AdminFailure> send(const AdminAccess& access, const std::string& target,
                                              const std::string* body, const std::string& token) {
  FetchRequest request{.url = access.url + target,
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
    return Failed(AdminFailure{Kind::no_answer, error.why});
  }
  if (!error.sent) return Failed(AdminFailure{Kind::wrong_url, error.why});
  return Failed(AdminFailure{Kind::no_answer, "the server there does not answer in HTTP"});
}

}  // namespace

std::expected<AdminAnswer, AdminFailure> ask_admin(const AdminAccess& access,
                                                   const std::string& target,
                                                   const std::string* body) {
  const auto address = http::parse_upstream_url(access.url);
  if (!address) {
    return Failed(
        AdminFailure{Kind::wrong_url, "\"" + printable(access.url) +
                                          "\" is no URL of an admin listener; write one such as "
                                          "http://127.0.0.1:9901"});
  }
  std::string token = access.token;
  if (token.empty() && !access.token_file.empty()) {
    auto read = read_token(access.token_file);
    if (!read) return Failed(std::move(read.error()));
    token = std::move(*read);
  }
  auto answer = send(access, target, body, token);
  if (!answer || !token.empty()) return answer;
  const std::string file = named_file(*answer);
  const bool is_here = is_loopback(address->endpoint.host + ":" + address->endpoint.port);
  if (file.empty() || !is_here) return answer;
  auto read = read_token(file);
  if (!read) return Failed(std::move(read.error()));
  return send(access, target, body, *read);
}

}  // namespace idem::cli
