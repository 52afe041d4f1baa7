#pragma once

#include "connect/connect_within.hpp"

#include <string>
#include <vector>

struct pg_conn;

namespace idem::postgres {

/// A server of a URI, by name.
struct NamedHost {
  std::string name;
  std::string port;
};

/// One address of a server, as libpq takes it: it connects to the address, and the name is what
/// the certificate has to have.
struct Place {
  std::string host;
  std::string port;
  std::string address;
};

/// The addresses at which a URI's servers may be. libpq alone tries them one after the other, and
/// waits for a silent one until the caller's patience is over; so the first that accepts is found
/// before, and libpq is given that one.
class Places {
 public:
  explicit Places(const std::string& uri);

  /// To be looked up, in their order. None: libpq needs no help, as with a socket's path, a single
  /// address in digits, `hostaddr` or a service.
  const std::vector<NamedHost>& hosts() const noexcept { return hosts_; }
  /// What the look-up of the host at this index brought.
  void found(std::size_t host, const std::expected<Peers, ConnectTrouble>& peers);
  /// Those that have not been tried.
  Peers peers() const;
  /// This one's place. A host is connected to once, so its other addresses are dropped, too.
  Place take(const Peer& peer);
  void none_accepted(const ConnectTrouble& trouble);
  void failed(const std::string& why);
  /// Everything that failed, for people.
  std::string why_none() const { return why_; }

 private:
  struct Candidate {
    std::size_t host;
    Peer peer;
  };
  std::vector<NamedHost> hosts_;
  std::vector<Candidate> candidates_;
  std::string why_;
};

}  // namespace idem::postgres
