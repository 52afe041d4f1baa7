#include "cli/commands/next_commands.hpp"

#include "cli/commands/admin_client.hpp"
#include "http/server.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace idem::cli {
namespace {

using ScopeKind = gateway::ScopeSource::Kind;

/// As one word of a POSIX shell.
std::string shell_word(const std::string& text) {
  static constexpr std::string_view harmless = "_-./:=@%+,";
  const bool is_plain = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || harmless.find(static_cast<char>(c)) != harmless.npos;
  });
  if (is_plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Where a client on this machine reaches a listener: HOST:PORT.
std::string reached_at(const std::string& address) {
  const auto parts = http::parse_host_port(address);
  if (!parts) return address;
  std::string host = parts->host;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  return (host.contains(':') ? '[' + host + ']' : host) + ':' +
         (parts->port == "0" ? "PORT" : parts->port);
}

bool is_trusted_here(const std::vector<http::Network>& proxies) {
  const http::PeerAddress here{.v4 = true, .bytes = {127, 0, 0, 1}};
  return proxies.empty() || http::any_contains(proxies, here);
}

/// curl's arguments by which the gateway knows the owner of the key.
std::string owner_arguments(const gateway::ScopeSource& scope, std::string& notes) {
  switch (scope.kind) {
    case ScopeKind::fixed:
      return {};
    case ScopeKind::header:
      if (!is_trusted_here(scope.trusted_proxies)) {
        notes += "# Send this one from a trusted proxy: " + scope.name +
                 " of any other client is ignored.\n";
      }
      return " -H " + shell_word(scope.name + ": acme");
    case ScopeKind::authorization:
      notes += "# TOKEN: an API key that your API accepts.\n";
      return " -H \"Authorization: Bearer ${TOKEN:-my-api-key}\"";
    case ScopeKind::jwt:
      notes += "# TOKEN: a token of the issuer.\n";
      return " -H \"Authorization: Bearer $TOKEN\"";
    case ScopeKind::mtls:
      notes += "# client.pem, client.key: a client's certificate and its key.\n";
      return " --cert client.pem --key client.key";
  }
  return {};
}

std::string request_command(const ReadSettings& read) {
  const auto& options = read.options;
  std::string notes = "# POST /: write a path and a body of your API instead.\n";
  const bool is_tls = !options.tls.certificate.empty();
  const auto& fields = read.given.key_headers.items;
  const std::string field = fields.empty() ? "Idempotency-Key" : fields.front().text;
  std::string command =
      "curl -i " + shell_word((is_tls ? "https://" : "http://") + reached_at(options.listen) + "/");
  if (is_tls) command += " --cacert " + shell_word(options.tls.certificate);
  command += owner_arguments(options.settings.scope, notes);
  command +=
      " -H " + shell_word(field + ": first-1") + " -H 'Content-Type: application/json' -d '{}'";
  return notes + command;
}

std::string keys_command(const ReadSettings& read) {
  const bool is_tls = !read.options.admin_tls.certificate.empty();
  const std::string url = (is_tls ? "https://" : "http://") + reached_at(read.options.admin);
  const bool is_default = url == AdminAccess().url && std::getenv("IDEM_ADMIN_URL") == nullptr;
  return "idem keys list" + (is_default ? std::string() : " --admin-url " + shell_word(url));
}

bool is_any_port(const std::string& address) {
  const auto parts = http::parse_host_port(address);
  return parts && parts->port == "0";
}

}  // namespace

std::string next_commands(const ReadSettings& read, const std::string& file) {
  std::string out = "idem gateway --config " + shell_word(file) + '\n';
  if (is_any_port(read.options.listen) || is_any_port(read.options.admin)) {
    out += "# PORT: the gateway logs it at its start.\n";
  }
  return out + request_command(read) + '\n' + keys_command(read) + '\n';
}

}  // namespace idem::cli
