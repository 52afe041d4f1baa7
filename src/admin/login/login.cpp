#include "admin/login/login.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <chrono>

namespace idem::admin {
namespace {

constexpr std::string_view group_prefix = "group:";

using http::FieldView;
using http::ServerStream;

/// None: the field is missing. The error: there are several.
std::expected<std::optional<std::string_view>, std::string> only_field(const ServerStream& client,
                                                                       std::string_view name) {
  std::optional<std::string_view> found;
  for (const FieldView& field : client.head().fields) {
    if (!http::same_name(field.name, name)) continue;
    if (found) return std::unexpected("There is more than one field " + std::string(name) + ".");
    found = field.value;
  }
  return found;
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    auto name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

/// The token of "Bearer TOKEN" (RFC 6750 §2.1); none: another scheme.
std::optional<std::string_view> bearer_of(std::string_view authorization) {
  constexpr std::string_view scheme = "Bearer";
  const auto named = authorization.substr(0, authorization.find(' '));
  if (!http::same_name(named, scheme)) return std::nullopt;
  auto token = authorization.substr(named.size());
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  return token;
}

/// A certificate's name without the digest of its authority: the listener has one list of
/// authorities, and all of them are trusted to name its clients.
std::string holder_of(const std::string& peer_identity) {
  return peer_identity.substr(0, peer_identity.rfind('#'));
}

std::string how_to_log_in(const LoginSettings& settings, bool is_near) {
  std::string ways;
  const auto add = [&](std::string_view way) {
    ways += (ways.empty() ? "" : ", or ") + std::string(way);
  };
  if (!settings.tokens_file.empty()) {
    add("send Authorization: Bearer with a token of idem admin token");
  }
  if (!settings.operator_token_file.empty() && is_near) {
    add("with the one in " + settings.operator_token_file);
  }
  if (!settings.identity_field.empty()) add("come through the trusted proxy");
  if (settings.reads_certificates) add("present a certificate");
  return ways;
}

}  // namespace

std::string source_name(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c <= ' ' || c >= 0x7F) c = '_';
  }
  constexpr std::size_t digest_digits = 8;
  if (out.size() > limits::operator_name_bytes_max) {
    out.resize(limits::operator_name_bytes_max - digest_digits - 1);
    out += '#' + to_hex(sha256(name)).substr(0, digest_digits);
  }
  return out;
}

bool is_local(const ServerStream& client) {
  const auto& peer = client.peer_address();
  if (!peer) return false;
  if (peer->v4) return peer->bytes[0] == 127;
  const bool is_zero = std::ranges::all_of(peer->bytes.begin(), peer->bytes.end() - 1,
                                           [](std::uint8_t byte) { return byte == 0; });
  return is_zero && peer->bytes.back() == 1;
}

Login::Login(LoginSettings settings, std::optional<OperatorToken> own, LogSink log)
    : settings_(std::move(settings)),
      tokens_(settings_.tokens_file),
      own_token_(std::move(own)),
      log_(std::move(log)) {}

std::expected<Login, std::string> Login::open(LoginSettings settings, LogSink log) {
  std::optional<OperatorToken> own;
  if (!settings.operator_token_file.empty()) {
    auto opened = OperatorToken::open(settings.operator_token_file);
    if (!opened) return std::unexpected("the operator's token: " + opened.error());
    own = std::move(*opened);
    log(LogLevel::info, "admin_token", {{"file", own->path()}});
  }
  if (!settings.tokens_file.empty()) {
    const auto tokens = read_tokens(settings.tokens_file);
    if (!tokens) return std::unexpected("the tokens of the admin API: " + tokens.error());
    const bool has_others = own || !settings.identity_field.empty() || settings.reads_certificates;
    if (tokens->empty() && !has_others) {
      log(LogLevel::warning, "admin_without_tokens",
          {{"file", settings.tokens_file},
           {"hint", "idem admin token NAME --role operator --tokens-file FILE"}});
    }
  }
  return Login(std::move(settings), std::move(own), std::move(log));
}

std::expected<Caller, std::string> Login::by_token(std::string_view authorization) {
  const auto token = bearer_of(authorization);
  if (!token) return std::unexpected("The scheme of Authorization is not Bearer.");
  if (own_token_ && own_token_->is(*token)) return Caller{{}, Role::operates};
  if (settings_.tokens_file.empty()) return std::unexpected("The token is not known.");
  const TokenEntry* const entry = tokens_.find(*token);
  if (!tokens_.trouble().empty()) {
    return std::unexpected("The gateway cannot read its tokens: its log says why.");
  }
  if (entry == nullptr) return std::unexpected("The token is not known; it may be revoked.");
  return Caller{entry->name, entry->role};
}

std::optional<Caller> Login::by_names(const std::string& name,
                                      const std::vector<std::string>& groups) const {
  std::optional<Role> role;
  for (const RoleGrant& grant : settings_.roles) {
    // A user may have a name that looks like a group.
    const bool is_meant =
        grant.to.starts_with(group_prefix)
            ? std::ranges::find(groups, grant.to.substr(group_prefix.size())) != groups.end()
            : grant.to == "*" || grant.to == name;
    if (is_meant && (!role || *role < grant.role)) role = grant.role;
  }
  if (!role) return std::nullopt;
  return Caller{source_name(name), *role};
}

// None: no trusted proxy named anybody. A role that is missing is an error with a name.
std::expected<std::optional<Caller>, std::string> Login::by_proxy(
    const ServerStream& client) const {
  if (settings_.identity_field.empty() || !client.peer_address()) return std::nullopt;
  if (!http::any_contains(settings_.trusted_proxies, *client.peer_address())) return std::nullopt;
  const auto name = only_field(client, settings_.identity_field);
  if (!name) return std::unexpected(name.error());
  if (!*name || (*name)->empty()) return std::nullopt;
  std::vector<std::string> groups;
  if (!settings_.groups_field.empty()) {
    const auto listed = only_field(client, settings_.groups_field);
    if (!listed) return std::unexpected(listed.error());
    groups = split_at_commas(listed->value_or(""));
  }
  auto caller = by_names(std::string(**name), groups);
  if (!caller) return std::unexpected(std::string());
  return caller;
}

std::expected<Caller, WireAnswer> Login::caller_of(const ServerStream& client) {
  constexpr std::string_view no_role = "This name has no role (admin_identity.roles).";
  const auto refused = [&](ProblemCode code, std::string detail) {
    return std::unexpected(refuse(client, code, std::move(detail)));
  };
  const auto proxied = by_proxy(client);
  if (!proxied && proxied.error().empty()) {
    return refused(ProblemCode::role_missing, std::string(no_role));
  }
  if (!proxied) return refused(ProblemCode::login_required, proxied.error());
  if (*proxied) return **proxied;
  const auto authorization = only_field(client, "Authorization");
  if (!authorization) return refused(ProblemCode::login_required, authorization.error());
  if (*authorization) {
    auto caller = by_token(**authorization);
    if (!caller) return refused(ProblemCode::login_required, caller.error());
    return *caller;
  }
  if (settings_.reads_certificates && client.peer_identity()) {
    auto caller = by_names(holder_of(*client.peer_identity()), {});
    if (!caller) return refused(ProblemCode::role_missing, std::string(no_role));
    return *caller;
  }
  std::string ways = how_to_log_in(settings_, is_local(client));
  // A command on this machine asks so for the file of the token.
  return std::unexpected(refuse(client, ProblemCode::login_required,
                                "The admin API needs a login: " + std::move(ways) + ".",
                                own_token_ && is_local(client)));
}

bool Login::may_probe(const ServerStream& client) const {
  switch (settings_.probes) {
    case Probes::loopback:
      return is_local(client);
    case Probes::everywhere:
      return true;
    case Probes::nowhere:
      return false;
  }
  return false;
}

WireAnswer Login::lacks_role(const ServerStream& client, const Caller& caller, Role least) {
  return refuse(client, ProblemCode::role_missing,
                "This needs the role " + std::string(name_of(least)) + "; the caller has " +
                    std::string(name_of(caller.role)) + ".");
}

WireAnswer Login::refuse(const ServerStream& client, ProblemCode code, std::string detail,
                         bool is_a_question) {
  WireAnswer answer = to_answer({.code = code, .detail = detail});
  if (code == ProblemCode::login_required) {
    answer.headers.push_back({"WWW-Authenticate", "Bearer realm=\"idem\""});
    // For the command line on this machine: it reads the token from there, if its user may.
    if (own_token_ && is_local(client)) {
      std::string member = ",\"token_file\":";
      append_json_string(member, own_token_->path());
      answer.body.insert(answer.body.rfind('}'), member);
    }
  }
  if (is_a_question) return answer;
  const auto now = MonotonicClock::now();
  if (now < log_again_at_) {
    ++unlogged_;
    return answer;
  }
  log_again_at_ = now + std::chrono::seconds(1);
  const std::string trouble = tokens_.trouble();
  log_(trouble.empty() ? LogLevel::warning : LogLevel::error, "admin_refused",
       {{"code", std::string(kind_of(code).name)},
        {"method", std::string(client.head().method)},
        {"reason", trouble.empty() ? detail : trouble},
        {"left_out", std::exchange(unlogged_, 0)}});
  return answer;
}

}  // namespace idem::admin
