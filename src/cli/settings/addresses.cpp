#include "cli/settings/addresses.hpp"

#include "config/words.hpp"
#include "core/bytes/ascii.hpp"
#include "http/server.hpp"
#include "http/upstream_pool.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

namespace idem::cli {
namespace {

using config::shown;
using http::HostPort;

std::optional<HostPort> parsed(const Given& given, Complaints& complaints) {
  if (given.text.empty()) return std::nullopt;
  auto address = http::parse_host_port(given.text);
  if (address) return std::move(*address);
  complaints.add(given.place, address.error() + "; write one such as 127.0.0.1:8080");
  return std::nullopt;
}

bool is_v4(std::string_view host) {
  return !host.empty() && std::ranges::count(host, '.') == 3 &&
         std::ranges::all_of(host, [](char c) { return is_digit(c) || c == '.'; });
}

bool is_loopback_host(std::string_view host) {
  return host == "localhost" || host == "::1" || (is_v4(host) && host.starts_with("127."));
}

bool is_any_host(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

/// Whether a request to `to` reaches a listener at `at`. Names are not looked up.
bool reaches(const HostPort& to, const HostPort& at) {
  if (to.port != at.port || at.port == "0") return false;
  if (to.host == at.host || (is_loopback_host(to.host) && is_loopback_host(at.host))) return true;
  return is_any_host(at.host) && (is_loopback_host(to.host) || is_any_host(to.host));
}

/// Whether two listeners would need the same address.
bool is_one(const HostPort& a, const HostPort& b) { return reaches(a, b) || reaches(b, a); }

bool is_host(std::string_view text) {
  const bool is_v6 = text.size() > 2 && text.starts_with('[') && text.ends_with(']');
  if (is_v6) {
    return std::ranges::all_of(text.substr(1, text.size() - 2),
                               [](char c) { return hex_value(c) >= 0 || c == ':' || c == '.'; });
  }
  constexpr std::size_t name_bytes_max = 253;  // RFC 1035 §2.3.4
  const bool is_name = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  return is_name && !text.empty() && text.size() <= name_bytes_max && text.front() != '.' &&
         text.front() != '-' && text.find("..") == text.npos;
}

}  // namespace

bool is_loopback(const std::string& address) {
  const auto parts = http::parse_host_port(address);
  return parts && is_loopback_host(parts->host);
}

void check_addresses(const GatewayFlags& flags, Purpose purpose, Complaints& complaints) {
  const auto listen = parsed(flags.listen, complaints);
  const auto admin = parsed(flags.admin, complaints);
  if (purpose != Purpose::gateway || !listen) return;
  if (admin && is_one(*listen, *admin)) {
    complaints.add(
        flags.admin.place,
        shown(flags.admin.text) + " is the address for clients (listen); write another port");
  }
  const auto upstream = http::parse_upstream_url(flags.upstream.text);
  if (!upstream) return;  // parse_upstream() complains.
  if (reaches(upstream->endpoint, *listen)) {
    complaints.add(flags.upstream.place,
                   shown(config::without_password(flags.upstream.text)) +
                       " is the address of this gateway itself (listen): each request would come "
                       "back to it; write the address of the API behind it");
  } else if (admin && reaches(upstream->endpoint, *admin)) {
    complaints.add(flags.upstream.place,
                   shown(config::without_password(flags.upstream.text)) +
                       " is this gateway's admin listener, which would be open to its clients; "
                       "write the address of the API behind it");
  }
}

void check_admin_hosts(const GivenList& hosts, Complaints& complaints) {
  for (const auto& host : hosts.items) {
    if (is_host(host.text)) continue;
    complaints.add(host.place, shown(host.text) +
                                   " is no host; write a name or an address without scheme, port "
                                   "and path, such as idem.internal or [fd00::1]");
  }
}

void check_link(const Given& link, std::string_view place, Complaints& complaints) {
  if (link.text.empty()) return;
  // Another scheme, such as javascript:, would run in the operator's browser.
  const bool is_web = link.text.starts_with("https://") || link.text.starts_with("http://");
  const bool is_clean =
      std::ranges::all_of(link.text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (is_web && is_clean && link.text.find(place) != std::string::npos) return;
  complaints.add(link.place, shown(link.text) + " is no such address; write https://... with " +
                                 std::string(place) + " where it belongs, and no space");
}

}  // namespace idem::cli
