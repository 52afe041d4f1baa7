#pragma once

#include <memory>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_session_st;
struct ssl_ctx_st;

namespace idem::test {

/// The certificates and keys of one side of a test's TLS connection.
struct TlsSide {
  std::string certificate{};  ///< PEM files; a client may have none.
  std::string key{};
  std::string ca{};    ///< The authority it trusts; empty: any.
  std::string host{};  ///< A client's: sent as SNI.
  std::string alpn{};  ///< One protocol's name; empty: none is offered or chosen.
  int version = 0;     ///< TLS1_2_VERSION, ...; 0: whatever both have.
  std::shared_ptr<ssl_session_st> session{};  ///< A client's, to be resumed.
};

/// The state that connections of one server share: sessions can be resumed.
std::shared_ptr<ssl_ctx_st> make_tls_server(const TlsSide& side);

/// TLS on a blocking socket, by OpenSSL and not by the code under test.
class TlsLayer {
 public:
  /// Null when the handshake failed.
  static std::unique_ptr<TlsLayer> accept(int fd, ssl_ctx_st* server);
  static std::unique_ptr<TlsLayer> connect(int fd, const TlsSide& side);

  bool send_all(std::string_view bytes);
  /// As ::read(): 0 at the announced end, below 0 for everything else.
  long receive(char* to, std::size_t room);
  void say_end();

  /// So many KeyUpdate records, which carry nothing for the reader, and `last` behind them: to
  /// be sent as they are. Bytes sent in another way from now on go nowhere.
  std::string behind_key_updates(int count, std::string_view last);

  std::string alpn() const;
  std::string version() const;
  std::string sni() const;
  bool resumed() const;
  std::shared_ptr<ssl_session_st> session() const;

 private:
  explicit TlsLayer(std::shared_ptr<ssl_st> session) : session_(std::move(session)) {}
  std::shared_ptr<ssl_st> session_;
};

}  // namespace idem::test
