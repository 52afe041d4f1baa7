#include "admin/login/tokens.hpp"
#include "cli/settings/addresses.hpp"
#include "cli/settings/environment.hpp"
#include "cli/settings/parse.hpp"
#include "config/words.hpp"
#include "http/head.hpp"
#include "http/server.hpp"
#include "store/known_kinds.hpp"

#include <array>
#include <charconv>
#include <filesystem>

namespace idem::cli {
namespace {

using admin::LoginSettings;
using config::shown;

/// By default beside a store on the disk, else beside the settings file.
std::string file_of(const GatewayFlags& flags, const Given& given, std::string_view ending) {
  if (!given.text.empty()) return given.text;
  if (auto store = path_in(flags.store.text)) {
    // Beside a directory that is written with a slash at its end, too.
    while (store->size() > 1 && store->ends_with('/')) store->pop_back();
    return *store + std::string(ending);
  }
  const auto path = std::filesystem::path(flags.folder) / ("idem" + std::string(ending));
  std::error_code error;  // The working directory may be gone.
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path.string() : absolute.string();
}

void parse_roles(const GatewayFlags& flags, LoginSettings& login, Complaints& complaints) {
  for (const auto& item : flags.admin_roles.items) {
    const auto equals = item.text.find('=');
    const auto role = admin::parse_role(item.text.substr(0, equals));
    std::string to = equals == std::string::npos ? std::string() : item.text.substr(equals + 1);
    if (!role || to.empty()) {
      complaints.add(item.place, shown(item.text) +
                                     " is no role with a name; write viewer=NAME, support=NAME or "
                                     "operator=NAME");
      continue;
    }
    if (to.starts_with("group:") && flags.admin_groups_field.text.empty()) {
      complaints.add(item.place,
                     "groups come in a field; write admin_identity.groups_field "
                     "(--admin-groups-field) too");
    }
    login.roles.push_back({*role, std::move(to)});
  }
}

void parse_field(const Given& given, std::string& out, Complaints& complaints) {
  if (given.text.empty()) return;
  out = given.text;
  if (!http::is_token(out)) {
    complaints.add(given.place, shown(out) + " is no field name; write one such as X-Name");
  }
  for (const auto* const taken : {"Authorization", "Cookie", "Host", "Idem-Operator"}) {
    if (!http::same_name(out, taken)) continue;
    complaints.add(given.place, shown(out) +
                                    " has another meaning; let the proxy use a field of "
                                    "its own, such as X-Forwarded-User");
  }
}

void check_identity(const GatewayFlags& flags, const LoginSettings& login, Complaints& complaints) {
  const bool by_proxy = !login.identity_field.empty();
  if (by_proxy && login.trusted_proxies.empty()) {
    complaints.add(flags.admin_identity_field.place,
                   "any client could claim any name by that field; write "
                   "admin_identity.trusted_proxies (--admin-trusted-proxy)");
  }
  if (!by_proxy && flags.admin_proxies.given) {
    complaints.add(flags.admin_proxies.place,
                   "a trusted proxy names its user in a field; write admin_identity.field "
                   "(--admin-identity-field)");
  }
  if (!by_proxy && flags.admin_groups_field.given) {
    complaints.add(flags.admin_groups_field.place,
                   "groups belong to a user; write admin_identity.field (--admin-identity-field)");
  }
  const bool has_names = by_proxy || login.reads_certificates;
  if (has_names && !flags.admin_roles.given) {
    complaints.add(
        by_proxy ? flags.admin_identity_field.place : flags.admin_client_ca.place,
        "without admin_identity.roles (--admin-role) no name has a role; write for instance "
        "operator=alice@example.com");
  }
  if (!has_names && flags.admin_roles.given) {
    complaints.add(flags.admin_roles.place,
                   "roles are those of a proxy's users or of certificates' holders; write "
                   "admin_identity.field or admin_tls.client_ca too. A token has its own role");
  }
}

/// The operator's own token names nobody, so with it there is one person at most.
void parse_approvals(const GatewayFlags& flags, bool is_configured, LoginSettings& login,
                     Complaints& complaints) {
  const std::array given{&flags.approve_resolve, &flags.approve_release, &flags.approve_jobs,
                         &flags.approve_discard};
  static_assert(given.size() == admin::approval_kind_count);
  for (std::size_t i = 0; i < given.size(); ++i) {
    unsigned& needs = login.approvals.needs[i];
    const std::string& text = given[i]->text;
    std::from_chars(text.data(), text.data() + text.size(), needs);
    if (needs <= 1 || is_configured) continue;
    complaints.add(given[i]->place,
                   "approvals need logins that name people; write admin_tokens (--admin-tokens "
                   "FILE), admin_identity.field or admin_tls.client_ca too");
  }
}

}  // namespace

void parse_login(const GatewayFlags& flags, GatewayOptions& options, Complaints& complaints) {
  LoginSettings& login = options.login;
  parse_server_files("admin_tls", flags.admin_tls_cert, flags.admin_tls_key, flags.admin_client_ca,
                     options.admin_tls, complaints);
  parse_field(flags.admin_identity_field, login.identity_field, complaints);
  parse_field(flags.admin_groups_field, login.groups_field, complaints);
  parse_networks(flags.admin_proxies, login.trusted_proxies, complaints);
  parse_roles(flags, login, complaints);
  login.reads_certificates = !flags.admin_client_ca.text.empty();
  check_identity(flags, login, complaints);
  if (flags.admin_probes.text == "everywhere") login.probes = admin::Probes::everywhere;
  if (flags.admin_probes.text == "nowhere") login.probes = admin::Probes::nowhere;
  const bool names_others = !login.identity_field.empty() || login.reads_certificates;
  const bool is_configured = names_others || !flags.admin_tokens.text.empty();
  parse_approvals(flags, is_configured, login, complaints);
  // Beside another login tokens count only where the settings say so.
  if (!names_others || !flags.admin_tokens.text.empty()) {
    login.tokens_file = file_of(flags, flags.admin_tokens, ".admin-tokens");
  }
  if (!is_configured) {
    login.operator_token_file = file_of(flags, flags.admin_token_file, ".admin-token");
  } else if (!flags.admin_token_file.text.empty() && !is_variable(flags.admin_token_file.place)) {
    complaints.add(flags.admin_token_file.place,
                   "another login is configured, and the process makes an operator's token only "
                   "where none is; leave this out");
  }
  if (!flags.admin_tokens.text.empty()) {
    const auto tokens = admin::read_tokens(login.tokens_file);
    if (!tokens) complaints.add(flags.admin_tokens.place, tokens.error());
  }
  // check_addresses() complains about one that is no address.
  const bool is_address = http::parse_host_port(options.admin).has_value();
  if (is_configured || !is_address || is_loopback(options.admin)) return;
  complaints.add(flags.admin.place,
                 shown(options.admin) +
                     " can be reached from other machines, and no login is configured; write "
                     "admin_tokens (--admin-tokens FILE), or 127.0.0.1:PORT");
}

}  // namespace idem::cli
