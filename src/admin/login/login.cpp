#include "admin/login/login.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/json_string.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <chrono>

namespace idem::admin {
namespace {

constexpr std::string_view group_prefix = "group:";
/// Of a grant to others than a proxy's user.
constexpr std::string_view prefixes[] = {group_prefix, "uri:", "subject:"};
constexpr std::size_t logged_path_bytes_max = 128;

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
    const auto name = trimmed(take_until(text, ','), " ");
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

bool has_prefix(std::string_view name) {
  return name == "*" ||
         std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

/// The id of the console's session that the request's cookie names.
std::optional<std::string> session_id_of(const ServerStream& client) {
  const auto field = only_field(client, "Cookie");
  if (!field || !*field) return std::nullopt;
  const auto id = cookie_in(**field, cookie_name_at(client.head().host));
  return id ? std::optional<std::string>(*id) : std::nullopt;
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
  if (is_operator_name(name)) return std::string(name);
  constexpr std::size_t digest_digits = 8;
  std::string out(name.substr(0, limits::operator_name_bytes_max - digest_digits - 1));
  std::ranges::replace_if(out, [](char c) { return c <= ' ' || c >= 0x7F; }, '_');
  return out + '#' + to_hex(sha256(name)).substr(0, digest_digits);
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
      reading_(std::make_shared<TokenReading>(settings_.tokens_file, std::move(own))),
      log_(std::move(log)) {}

std::expected<Login, std::string> Login::open(LoginSettings settings, LogSink log) {
  std::optional<OperatorToken> own;
  if (!settings.operator_token_file.empty()) {
    auto opened = OperatorToken::open(settings.operator_token_file);
    if (!opened) {
      return std::unexpected("the operator's token: " + opened.error() +
                             "; or name another file (--admin-token-file), or configure "
                             "admin_tokens (--admin-tokens)");
    }
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

Task<void> Login::look(Loop& loop) {
  auto looking = reading_->look(loop);
  co_await looking;
}

std::expected<Caller, std::string> Login::by_token(const Digest& token) {
  const KnownTokens& known = reading_->known();
  if (known.own && *known.own == token) return Caller{{}, Role::operates, token, "operator_token"};
  if (settings_.tokens_file.empty()) return std::unexpected("The token is not known.");
  const TokenEntry* const entry = find_token(known.entries, token);
  if (!known.trouble.empty()) {
    log_refusal(LogLevel::error, "tokens_unreadable", {}, known.trouble);
    return std::unexpected("The gateway cannot read its tokens: its log says why.");
  }
  if (entry == nullptr) return std::unexpected("The token is not known; it may be revoked.");
  return Caller{entry->name, entry->role, token, "token"};
}

std::optional<Role> Login::role_of(const std::vector<std::string>& names) const {
  std::optional<Role> role;
  for (const RoleGrant& grant : settings_.roles) {
    const bool is_meant = grant.to == "*" || std::ranges::find(names, grant.to) != names.end();
    if (is_meant && (!role || *role < grant.role)) role = grant.role;
  }
  return role;
}

bool Login::comes_from_proxy(const ServerStream& client) const {
  return !settings_.identity_field.empty() && client.peer_address() &&
         http::any_contains(settings_.trusted_proxies, *client.peer_address());
}

std::expected<std::optional<Login::Named>, std::string> Login::named_by_proxy(
    const ServerStream& client) const {
  const auto name = only_field(client, settings_.identity_field);
  if (!name) return std::unexpected(name.error());
  if (!*name || (*name)->empty()) return std::nullopt;
  Named named{std::string(**name), {}};
  // A user whose name looks like a group or a certificate's holder is neither.
  if (!has_prefix(named.name)) named.granted.push_back(named.name);
  if (settings_.groups_field.empty()) return named;
  const auto listed = only_field(client, settings_.groups_field);
  if (!listed) return std::unexpected(listed.error());
  for (const auto& group : split_at_commas(listed->value_or(""))) {
    named.granted.push_back(std::string(group_prefix) + group);
  }
  return named;
}

std::expected<Caller, WireAnswer> Login::with_role(const ServerStream& client, const Named& named,
                                                   std::string_view login) {
  const auto role = role_of(named.granted);
  if (role) return Caller{source_name(named.name), *role, {}, login};
  return std::unexpected(
      refuse(client, ProblemCode::role_missing,
             "The name " + source_name(named.name) + " has no role (admin_identity.roles)."));
}

std::expected<Caller, WireAnswer> Login::caller_of(const ServerStream& client) {
  const auto refused = [&](std::string detail) {
    return std::unexpected(refuse(client, ProblemCode::login_required, std::move(detail)));
  };
  const bool is_proxy = comes_from_proxy(client);
  if (is_proxy) {
    const auto named = named_by_proxy(client);
    if (!named) return refused(named.error());
    if (*named) return with_role(client, **named, "proxy");
  }
  const auto authorization = only_field(client, "Authorization");
  if (!authorization) return refused(authorization.error());
  if (*authorization) {
    const auto token = bearer_of(**authorization);
    if (!token) return refused("The scheme of Authorization is not Bearer.");
    if (token->empty()) return refused("Authorization has no token.");
    auto caller = by_token(sha256(*token));
    if (!caller) return refused(caller.error());
    return *caller;
  }
  const Session* const session = session_of(client);
  if (session != nullptr) return by_session(client, *session);
  // A proxy's own certificate names no user.
  if (settings_.reads_certificates && client.peer_holder() && !is_proxy) {
    return with_role(client, {*client.peer_holder(), {*client.peer_holder()}}, "certificate");
  }
  if (session_id_of(client)) {
    constexpr bool is_a_question = true;  // A page that stayed open is no attack.
    return std::unexpected(refuse(client, ProblemCode::login_required,
                                  "The session is over: log in again.", is_a_question));
  }
  std::string ways = how_to_log_in(settings_, is_local(client));
  // A command on this machine asks so for the file of the token.
  return std::unexpected(refuse(client, ProblemCode::login_required,
                                "The admin API needs a login: " + std::move(ways) + ".",
                                !settings_.operator_token_file.empty() && is_local(client)));
}

const Session* Login::session_of(const ServerStream& client) {
  const auto id = session_id_of(client);
  const Session* const session = id ? sessions_.find(*id, MonotonicClock::now()) : nullptr;
  if (session == nullptr) return nullptr;
  // Who revokes a token ends its sessions. They are not dropped here, because the file of the
  // tokens may be unreadable for a moment.
  return still_has(session->caller) ? session : nullptr;
}

std::expected<Caller, WireAnswer> Login::by_session(const ServerStream& client,
                                                    const Session& session) {
  const auto& method = client.head().method;
  if (method == "GET" || method == "HEAD") return session.caller;
  const auto repeated = only_field(client, "Idem-Csrf");
  const bool is_its_own = repeated && *repeated && sha256(**repeated) == sha256(session.csrf);
  if (is_its_own) return session.caller;
  return std::unexpected(
      to_answer({.code = ProblemCode::bad_request,
                 .detail = "Idem-Csrf is missing or is not the session's: load the page again.",
                 .status = 403}));
}

Login::Browser Login::browser_of(const ServerStream& client) const {
  Browser browser{.host = std::string(client.head().host),
                  .before = session_id_of(client).value_or("")};
  if (const auto& peer = client.peer_address()) browser.peer = http::text_of(*peer);
  if (!comes_from_proxy(client)) return browser;
  const auto named = named_by_proxy(client);
  if (named && *named) browser.by_proxy = source_name((*named)->name);
  return browser;
}

std::string Login::csrf_of(const ServerStream& client, const Caller& caller) {
  const Session* const session = caller.in_session ? session_of(client) : nullptr;
  return session != nullptr ? session->csrf : "";
}

std::expected<Login::Begun, WireAnswer> Login::begin_session(const Browser& browser,
                                                             const std::string& token,
                                                             const std::string& code) {
  const MonotonicTime now = MonotonicClock::now();
  const auto refused = [&](const std::string& detail) {
    log_refusal(LogLevel::warning, kind_of(ProblemCode::login_required).name, "/v1/session",
                detail);
    return std::unexpected(to_answer({.code = ProblemCode::login_required, .detail = detail}));
  };
  if (browser.by_proxy) {
    return std::unexpected(
        to_answer({.code = ProblemCode::state_refused,
                   .detail = "The proxy in front logs this browser in as " + *browser.by_proxy +
                             ", with each request: a token changes nothing here."}));
  }
  std::expected<Caller, std::string> caller;
  if (token.empty()) {
    auto redeemed = sessions_.redeem(code, now);
    if (!redeemed || !still_has(*redeemed)) {
      return refused("The code is not known, was used, or is older than two minutes.");
    }
    caller = std::move(*redeemed);
  } else {
    caller = by_token(sha256(token));
    if (!caller) return refused(caller.error());
  }
  log_(LogLevel::info, "console_login",
       {{"operator", caller->name.empty() ? "the operator's token" : caller->name},
        {"role", std::string(name_of(caller->role))},
        {"by", token.empty() ? "code" : "token"},
        {"peer", browser.peer}});
  sessions_.end(browser.before);
  const std::string id = sessions_.begin(std::move(*caller), now);
  return Begun{*sessions_.find(id, now), session_cookie(cookie_name_at(browser.host), id)};
}

std::string Login::end_session(const ServerStream& client) {
  if (const auto id = session_id_of(client)) sessions_.end(*id);
  return session_cookie(cookie_name_at(client.head().host), {});
}

std::optional<std::string> Login::make_code(const Caller& caller) {
  if (!caller.token || caller.in_session) return std::nullopt;
  return sessions_.make_code(caller, MonotonicClock::now());
}

bool Login::still_has(const Caller& caller) {
  if (!caller.token) return true;
  const auto now = by_token(*caller.token);
  return now && now->name == caller.name && now->role == caller.role;
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
    if (!settings_.operator_token_file.empty() && is_local(client)) {
      answer.body.insert(answer.body.rfind('}'),
                         ",\"token_file\":" + json_string(settings_.operator_token_file));
    }
  }
  if (is_a_question) return answer;
  const auto target = client.head().origin_form;
  const auto path = target.substr(0, std::min(target.find('?'), logged_path_bytes_max));
  log_refusal(LogLevel::warning, kind_of(code).name, path, detail);
  return answer;
}

void Login::log_refusal(LogLevel level, std::string_view code, std::string_view path,
                        const std::string& reason) {
  const auto now = MonotonicClock::now();
  if (now < log_again_at_) {
    ++unlogged_;
    return;
  }
  log_again_at_ = now + std::chrono::seconds(1);
  log_(level, "admin_refused",
       {{"code", std::string(code)},
        {"path", std::string(path)},
        {"reason", reason},
        {"left_out", std::exchange(unlogged_, 0)}});
}

}  // namespace idem::admin
