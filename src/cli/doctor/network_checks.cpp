#include "cli/doctor/network_checks.hpp"

#include "cli/doctor/file_checks.hpp"
#include "cli/settings/addresses.hpp"
#include "connect/connect_within.hpp"
#include "http/server.hpp"
#include "webhook/fetch.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace idem::cli::doctor {
namespace {

using http::HostPort;

constexpr Millis connect_timeout = std::chrono::seconds(3);
constexpr Millis handshake_timeout = std::chrono::seconds(5);

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// What a listener would bind.
std::expected<Addresses, std::string> own_addresses(const HostPort& to) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(to.host.c_str(), to.port.c_str(), &wanted, &found);
  if (code != 0) return std::unexpected(std::string(::gai_strerror(code)));
  return Addresses(found, &::freeaddrinfo);
}

struct Service {
  std::string check;
  HostPort at;
  bool tls = false;
  std::shared_ptr<const http::TlsContext> context{};  ///< Null: made of `ca`.
  std::string ca{};
};

Findings probe_tls(const Service& service, const OwnedDescriptor& socket) {
  auto context = service.context;
  if (!context) {
    auto made = http::TlsContext::for_client({.ca = service.ca});
    if (!made) {
      return {Finding::problem(service.check, made.error(), "correct the path of its CA")};
    }
    context = std::move(*made);
  }
  const auto probe = http::probe_tls(*context, socket.get(), service.at.host, handshake_timeout);
  const std::string place = service.at.host + ":" + service.at.port;
  Findings found;
  if (!probe.why_not.empty()) {
    found.push_back(Finding::problem(
        service.check, fmt::format("{} answers, and TLS fails: {}", place, probe.why_not),
        probe.peer ? "its owner has to renew the certificate, or `ca` has to name its authority"
                   : "look whether it serves TLS there; write http:// if it does not"));
  } else {
    found.push_back(Finding::ok(service.check, place + " answers, with TLS"));
  }
  if (probe.peer) {
    found.push_back(judge_certificate(service.check + " certificate", *probe.peer, now(),
                                      "its owner has to renew it"));
  }
  return found;
}

Findings probe(const Service& service) {
  const std::string place = service.at.host + ":" + service.at.port;
  const MonotonicTime deadline = MonotonicClock::now() + connect_timeout;
  const auto peers = look_up(service.at.host, service.at.port, deadline);
  if (!peers) {
    return {Finding::problem(service.check,
                             service.at.host + " has no address: " + peers.error().why,
                             "correct the name, or this machine's resolver (/etc/resolv.conf)")};
  }
  const auto connected = connect_within(*peers, deadline);
  if (!connected) {
    return {Finding::problem(service.check,
                             fmt::format("{} cannot be reached: {}", place, connected.error().why),
                             "start it, correct the address, or open the firewall")};
  }
  if (!service.tls) return {Finding::ok(service.check, place + " answers")};
  return probe_tls(service, connected->socket);
}

/// Of an http or https URL, whose path may have placeholders. None: it is none.
std::optional<Service> service_at(std::string check, const std::string& url,
                                  const std::string& ca) {
  const auto scheme = url.find("://");
  if (scheme == url.npos) return std::nullopt;
  const auto host = fetch_host_of(url.substr(0, url.find_first_of("/?", scheme + 3)) + "/");
  if (!host) return std::nullopt;
  const auto at = http::parse_host_port(*host);
  if (!at) return std::nullopt;
  return Service{std::move(check), *at, url.starts_with("https:"), nullptr, ca};
}

/// A listener of a gateway, and how it is recognised.
struct Listener {
  std::string check;
  std::string address;
  bool has_tls = false;
  std::string path;   ///< Asked by GET, which changes nothing.
  std::string shows;  ///< A part of the answer's body.
};

Finding in_use(const Listener& listener, const HostPort& at) {
  const auto& [check, address, has_tls, path, shows] = listener;
  if (has_tls) {
    return Finding::skipped(check, address + " is in use; behind TLS it is not asked by whom");
  }
  const std::string url = "http://" + address + path;
  const auto host = fetch_host_of(url);
  auto answer = Fetcher().fetch(
      {.url = url, .timeout = connect_timeout, .allowed_hosts = {host.value_or(at.host)}});
  const bool is_gateway = answer && answer->body.contains(shows);
  if (is_gateway) return Finding::ok(check, "a gateway listens on " + address);
  return Finding::warning(
      check, address + " is in use, and what listens there does not answer as this gateway would",
      "if it is neither a gateway with these settings nor systemd's socket for it, end that "
      "process "
      "or write another port");
}

/// Binds as a gateway would, and closes.
Finding check_listener(const Listener& listener) {
  const auto& check = listener.check;
  const auto& address = listener.address;
  const auto at = http::parse_host_port(address);
  if (!at) return Finding::skipped(check, address + " is no HOST:PORT");
  const auto addresses = own_addresses(*at);
  if (!addresses) {
    return Finding::problem(check, at->host + " has no address: " + addresses.error(),
                            "write an address of this machine");
  }
  const addrinfo& first = **addresses;
  const OwnedDescriptor socket(::socket(first.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool is_free =
      ::bind(socket.get(), first.ai_addr, first.ai_addrlen) == 0 && ::listen(socket.get(), 1) == 0;
  if (is_free) return Finding::ok(check, address + " is free");
  switch (errno) {
    case EADDRINUSE:
      return in_use(listener, *at);
    case EACCES:
      return Finding::problem(check, "this user may not listen on " + address,
                              "write a port from 1024 on, or let systemd pass the socket");
    case EADDRNOTAVAIL:
      return Finding::problem(check, "no interface of this machine has the address of " + address,
                              "write an address of this machine, or 0.0.0.0 for all");
    default:
      return Finding::problem(check, address + " cannot be listened on: " + std::strerror(errno),
                              "write another address");
  }
}

Finding check_exposure(const GatewayOptions& options) {
  const bool has_tls = !options.admin_tls.certificate.empty();
  if (is_loopback(options.admin)) {
    return Finding::ok("admin exposure", "only this machine reaches the admin listener");
  }
  if (has_tls) {
    return Finding::ok("admin exposure", "other machines reach the admin listener, over TLS");
  }
  return Finding::warning("admin exposure",
                          "other machines reach the admin listener without TLS: who listens on the "
                          "way learns the tokens of operators",
                          "listen on 127.0.0.1, or give the admin listener a certificate");
}

}  // namespace

Findings check_listeners(const GatewayOptions& options, Purpose purpose) {
  Findings found;
  if (purpose == Purpose::gateway) {
    found.push_back(check_listener({"listener", options.listen, !options.tls.certificate.empty(),
                                    "/.well-known/idempotency", "Idempotency-Key"}));
  }
  if (options.admin.empty()) {
    found.push_back(Finding::warning(
        "admin listener", "there is none: idem status, idem keys and /metrics cannot ask",
        "set admin to 127.0.0.1:9901"));
    return found;
  }
  // Its answer has a status, also where it refuses this Host.
  found.push_back(check_listener({"admin listener", options.admin,
                                  !options.admin_tls.certificate.empty(), "/livez", "\"status\""}));
  found.push_back(check_exposure(options));
  return found;
}

std::vector<Probe> service_probes(const ReadSettings& read) {
  const auto& settings = read.options.settings;
  std::vector<Probe> probes;
  const auto add = [&](std::optional<Service> service, const std::string& check) {
    if (!service) {
      probes.push_back({check, [check] {
                          return Findings{Finding::skipped(check, "it has no address to ask")};
                        }});
      return;
    }
    probes.push_back({check, [service = std::move(*service)] { return probe(service); }});
  };
  if (!settings.upstream.endpoint.host.empty()) {
    add(Service{"upstream", settings.upstream.endpoint, settings.upstream.tls,
                settings.upstream_tls},
        "upstream");
  }
  if (settings.authorize) {
    add(Service{"authoriser", settings.authorize->address.endpoint, settings.authorize->address.tls,
                settings.authorize->tls},
        "authoriser");
  }
  Complaints ignored;
  for (const auto& one : read_providers(read.given.providers, ignored)) {
    const std::string check = "provider " + one.name.text;
    add(service_at(check, one.url.text, one.ca.text), check);
  }
  for (const auto& one : read_destinations(read.given.destinations, ignored)) {
    const std::string check = "destination " + one.name.text;
    add(service_at(check, one.url.text, one.ca.text), check);
  }
  if (!read.options.traces.url.empty()) {
    const std::string check = "collector of traces";
    probes.push_back(
        {check,
         [service = service_at(check, read.options.traces.url, read.options.traces.ca_file),
          check]() -> Findings {
           if (!service) return {Finding::skipped(check, "it has no address to ask")};
           Findings found = probe(*service);
           for (Finding& one : found) {
             if (one.result != Finding::Result::problem) continue;
             one.result = Finding::Result::warning;
             one.what += "; spans are lost meanwhile, and requests are served";
           }
           return found;
         }});
  }
  return probes;
}

}  // namespace idem::cli::doctor
