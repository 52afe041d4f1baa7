#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;
struct ssl_session_st;
struct bio_st;

/// The only users of OpenSSL's TLS: TLS 1.2 and 1.3, ALPN `http/1.1` only, no compression,
/// no renegotiation, and no early data, because an attacker can replay a first flight, which
/// is a retry that no client asked for (RFC 8446 §8, RFC 8470).
namespace idem::http {

/// Certificates and rules of one side. Never changes, so it may be used from any thread.
class TlsContext {
 public:
  struct ServerFiles {
    std::string certificate;  ///< PEM, the leaf first, then its chain.
    std::string key;          ///< PEM, without a passphrase.
    /// PEM: the authorities of client certificates; empty: clients are asked for none. A client
    /// without one is served, but has no peer_identity(); one with a wrong one is refused.
    std::string client_ca{};
  };
  /// Reads the files; the error is a sentence that names the file. With `before`, sessions that
  /// began under it can be resumed. Where client certificates are asked for there is no resumption:
  /// each connection's certificate is verified.
  static std::expected<std::shared_ptr<const TlsContext>, std::string> for_server(
      const ServerFiles& files, const TlsContext* before = nullptr);

  struct ClientFiles {
    std::string ca{};    ///< PEM; empty: the system's.
    bool verify = true;  ///< The chain, and that the certificate is the host's.
  };
  static std::expected<std::shared_ptr<const TlsContext>, std::string> for_client(
      const ClientFiles& files);

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* get() const noexcept { return context_; }
  bool verifies() const noexcept { return verifies_; }

 private:
  TlsContext(ssl_ctx_st* context, bool verifies) : context_(context), verifies_(verifies) {}

  ssl_ctx_st* context_;
  bool verifies_;
};

/// With it a client may resume a session with a server.
using TlsTicket = std::unique_ptr<ssl_session_st, void (*)(ssl_session_st*)>;

/// One TLS session over a socket that does not block. Never waits. One thread at a time.
class TlsSession {
 public:
  /// What the call waits for.
  enum class Wants : std::uint8_t {
    nothing,   ///< It is complete.
    readable,  ///< Call again when the socket has bytes.
    writable,  ///< Call again, with the same bytes, when the socket accepts some.
    ended,     ///< The peer sent close_notify.
    failed,    ///< Cut without a close_notify, or not TLS; see why().
  };

  static std::unique_ptr<TlsSession> accept(const TlsContext& context, int socket);
  /// The certificate must be for `host`, a name or an IP address; a name is sent as SNI.
  static std::unique_ptr<TlsSession> connect(const TlsContext& context, int socket,
                                             const std::string& host, ssl_session_st* ticket);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  Wants handshake();

  struct Moved {
    std::size_t bytes = 0;
    Wants wants = Wants::nothing;
  };
  Moved read(char* to, std::size_t room);
  /// Accepts at most one record's worth.
  Moved write(std::string_view bytes);
  /// nothing: there are bytes to read; readable: there are none. Reads and answers TLS's own
  /// messages. With held_back() there may be more of those, and it knows neither.
  Wants peek();
  /// The last call left bytes in the kernel that may be TLS's own messages.
  bool held_back() const noexcept { return held_back_; }
  /// Sends close_notify; call it again while it answers `writable`.
  Wants send_close_notify();

  /// Bytes that the kernel accepted from this session, TLS's own included.
  std::uint64_t bytes_out() const noexcept;
  bool resumed() const noexcept;
  /// A name for the holder of the peer's verified certificate that outlives the certificate's
  /// renewal: its first URI name (RFC 5280 §4.2.1.6), or else its subject as text; then `#` and a
  /// digest of the same together with the authority in which its chain ends, since two authorities
  /// may use one name. None where there is no certificate, or it has no name.
  std::optional<std::string> peer_identity() const;
  /// The same holder with its whole name: "uri:" and the URI, or "subject:" and the subject as
  /// text. Two authorities may use one name.
  std::optional<std::string> peer_holder() const;
  /// Of a client's session: none before the server has given one.
  TlsTicket ticket() const;
  const std::string& why() const noexcept { return why_; }

 private:
  explicit TlsSession(ssl_st* session);
  void begin_call();
  Wants wants_after(int result);
  static long before_io(bio_st* bio, int operation, const char*, std::size_t, int, long, int result,
                        std::size_t*);

  ssl_st* session_;
  int reads_left_ = 0;
  bool held_back_ = false;  ///< The kernel had more than one call may read.
  std::string why_;
};

}  // namespace idem::http
