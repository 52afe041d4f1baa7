#pragma once

#include "http/admission.hpp"
#include "http/server_stream.hpp"

#include <expected>
#include <memory>
#include <string>
#include <vector>

namespace idem::http {

/// Answers the requests of one loop's connections. Called on that loop's thread only.
class Service {
 public:
  virtual ~Service() = default;
  /// Serves one request: reads what it needs of the body and answers exactly once.
  virtual Task<void> serve(ServerStream& stream) = 0;
  /// For requests that are refused before serve(), when no route is known.
  virtual ErrorForm error_form() const { return ErrorForm::problem; }
};

/// A loop and the service that answers on it.
struct ServingLoop {
  Loop* loop;
  Service* service;
};

/// Accepts connections on one address and spreads them over loops; a connection never moves.
class Server {
 public:
  /// Listens, without accepting yet. HOST:PORT with a numeric or resolvable host; port 0 means a
  /// free one. `passed`: a socket that listens on this address already, in place of a new one; the
  /// server owns it then. The error is a sentence: the address is malformed, or another process
  /// listens on it.
  static std::expected<std::unique_ptr<Server>, std::string> listen(const std::string& address,
                                                                    std::vector<ServingLoop> loops,
                                                                    ServerStream::Options options,
                                                                    Admission::Options admission,
                                                                    int passed = no_socket);
  static constexpr int no_socket = -1;
  virtual ~Server() = default;

  /// "HOST:PORT" as bound.
  virtual std::string address() const = 0;
  /// The socket that listens; the server closes it when it drains.
  virtual int socket() = 0;
  /// Connections accepted from now on speak TLS with this context; those before keep theirs. Before
  /// start(), or from any thread.
  virtual void use_tls(std::shared_ptr<const TlsContext> context) = 0;
  /// As Admission::Options::proxies, for connections accepted from now on. Any thread.
  virtual void use_proxies(std::vector<Network> proxies) = 0;
  /// Open connections, and those refused since the start. Safe from any thread.
  virtual std::size_t open_connections() const = 0;
  virtual std::uint64_t refused_connections() const = 0;
  /// Starts to accept. Before the loops run.
  virtual void start() = 0;
  /// From now on each answer ends its connection; new ones are accepted. Safe from any thread.
  virtual void leave() = 0;
  /// Stops accepting, ends idle connections, lets busy ones finish. Safe from any thread.
  virtual void drain() = 0;
  /// After drain(): every loop has begun to drain, and none of its coroutines runs. Any thread.
  virtual bool drained() const = 0;
};

/// Splits "host:port" or "[v6]:port".
struct HostPort {
  std::string host;
  std::string port;
};
std::expected<HostPort, std::string> parse_host_port(const std::string& address);

}  // namespace idem::http
