#include "store/postgres/places.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace idem::postgres {
namespace {

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  for (;;) {
    const auto comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == list.npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string usual_port() {
  const std::string port = environment("PGPORT");
  return port.empty() ? "5432" : port;
}

/// libpq takes it for the path of a socket, or for its own default.
bool is_no_name(std::string_view host) {
  return host.empty() || host.starts_with('/') || host.starts_with('@');
}

}  // namespace

Places::Places(const std::string& uri) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(uri.c_str(), nullptr), &PQconninfoFree);
  if (!options) return;
  const auto value_of = [&](std::string_view keyword) {
    const PQconninfoOption* at = options.get();
    while (at->keyword != nullptr && at->keyword != keyword) ++at;
    return std::string(at->keyword != nullptr && at->val != nullptr ? at->val : "");
  };
  // Addresses that were given, or are given elsewhere.
  if (!value_of("hostaddr").empty() || !environment("PGHOSTADDR").empty()) return;
  if (!value_of("service").empty() || !environment("PGSERVICE").empty()) return;
  const auto names = parts_of(value_of("host"));
  const auto ports = parts_of(value_of("port"));
  // libpq says what is wrong with a list of another length.
  if (ports.size() != 1 && ports.size() != names.size()) return;
  if (std::ranges::any_of(names, is_no_name)) return;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& port = ports.size() == 1 ? ports.front() : ports[i];
    hosts_.push_back({names[i], port.empty() ? usual_port() : port});
  }
  const bool is_one_address =
      hosts_.size() == 1 && numeric_peer(hosts_.front().name, hosts_.front().port).has_value();
  if (is_one_address) hosts_.clear();
}

void Places::found(std::size_t host, const std::expected<Peers, ConnectTrouble>& peers) {
  if (!peers) {
    return failed("could not translate host name \"" + hosts_[host].name +
                  "\" to address: " + peers.error().why);
  }
  for (const Peer& peer : *peers) candidates_.push_back({host, peer});
}

Peers Places::peers() const {
  Peers peers;
  for (const Candidate& one : candidates_) peers.push_back(one.peer);
  return peers;
}

Place Places::take(const Peer& peer) {
  const auto at = std::ranges::find(candidates_, peer, &Candidate::peer);
  const std::size_t host = at->host;
  std::erase_if(candidates_, [&](const Candidate& one) { return one.host == host; });
  return {hosts_[host].name, hosts_[host].port, address_text(peer)};
}

void Places::none_accepted(const ConnectTrouble& trouble) {
  std::string at;
  for (const Candidate& one : candidates_) {
    const NamedHost& host = hosts_[one.host];
    at += (at.empty() ? "" : ", ") + host.name + " (" + address_text(one.peer) + "):" + host.port;
  }
  failed("connection to " + at + " failed: " + trouble.why);
}

void Places::failed(const std::string& why) {
  if (!why_.empty()) why_ += "; ";
  why_ += why;
}

}  // namespace idem::postgres
