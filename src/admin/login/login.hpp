#pragma once

#include "admin/login/login_settings.hpp"
#include "admin/login/sessions.hpp"
#include "admin/login/token_reading.hpp"
#include "core/exchange/problem.hpp"
#include "http/server_stream.hpp"
#include "loop/loop.hpp"

#include <idem/log.hpp>

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace idem::admin {

/// The one gate of the admin API. One thread.
class Login {
 public:
  /// Makes the operator's token where the settings say so, and logs where it is.
  static std::expected<Login, std::string> open(LoginSettings settings, LogSink log);

  /// Reads the files of the tokens if they have changed, on a thread of their own. To be awaited
  /// before what judges by a token. A disk that hangs must not hold up the loop, nor the probes
  /// with it: after limits::token_read_max what was read last counts.
  Task<void> look(Loop& loop);

  /// Who sent this request, or why nobody with a role did: 401 `login_required` or 403
  /// `role_missing`. A trusted proxy's name counts before a token, a token before the session of a
  /// browser, and that before a certificate; a wrong token is refused even with a good certificate.
  /// A request in a session that is no GET or HEAD needs the session's `Idem-Csrf`: 403.
  std::expected<Caller, WireAnswer> caller_of(const http::ServerStream& client);
  /// Whether the token of an earlier caller_of() is still good for the same name and role. Look and
  /// ask behind each wait for a client: a slow body may outlast a revocation.
  bool still_has(const Caller& caller);
  /// What a browser's request for a session says besides its body.
  struct Browser {
    std::string host;                       ///< Of the request: it names the cookie.
    std::string before{};                   ///< The id of the session that it has; may be empty.
    std::string peer{};                     ///< For the log.
    std::optional<std::string> by_proxy{};  ///< Whom a trusted proxy names.
  };
  Browser browser_of(const http::ServerStream& client) const;
  /// The second value of the session in which this caller's request came; empty: it came in none.
  std::string csrf_of(const http::ServerStream& client, const Caller& caller);
  /// A session that has begun, and the Set-Cookie by which the browser keeps it.
  struct Begun {
    Session session;
    std::string cookie;
  };
  /// Begins a session by a token, or by a code of make_code() where the token is empty, in place of
  /// the one that the browser has. The error is 401, or 409 where each request of the browser has
  /// the name that a proxy gives it.
  std::expected<Begun, WireAnswer> begin_session(const Browser& browser, const std::string& token,
                                                 const std::string& code);
  /// Ends the session of the request's cookie, if there is one. Returns the Set-Cookie that removes
  /// the cookie.
  std::string end_session(const http::ServerStream& client);
  /// A code that begins one session of this caller within limits::console_code_max. None: the
  /// caller has sent no token. A session makes none: it would outlive its own end.
  std::optional<std::string> make_code(const Caller& caller);

  /// Whether this client may ask a probe without a login.
  bool may_probe(const http::ServerStream& client) const;
  /// The answer to a caller whose role is less than `least`. Logs it.
  WireAnswer lacks_role(const http::ServerStream& client, const Caller& caller, Role least);

  const std::string& tokens_file() const noexcept { return settings_.tokens_file; }
  const ApprovalSettings& approvals() const noexcept { return settings_.approvals; }

 private:
  Login(LoginSettings settings, std::optional<OperatorToken> own, LogSink log);

  /// A name, and the names by which roles are granted to it.
  struct Named {
    std::string name;
    std::vector<std::string> granted;
  };
  std::expected<Caller, std::string> by_token(const Digest& token);
  static std::expected<Caller, WireAnswer> by_session(const http::ServerStream& client,
                                                      const Session& session);
  std::optional<Role> role_of(const std::vector<std::string>& names) const;
  bool comes_from_proxy(const http::ServerStream& client) const;
  /// The session that the request's cookie names; null: there is none, or it is over. Valid until
  /// the next call.
  const Session* session_of(const http::ServerStream& client);
  /// None: it names nobody.
  std::expected<std::optional<Named>, std::string> named_by_proxy(
      const http::ServerStream& client) const;
  std::expected<Caller, WireAnswer> with_role(const http::ServerStream& client, const Named& named,
                                              std::string_view login);
  /// `is_a_question`: of a caller without any login, who gets the answer and no line in the log.
  WireAnswer refuse(const http::ServerStream& client, ProblemCode code, std::string detail,
                    bool is_a_question = false);
  void log_refusal(LogLevel level, std::string_view code, std::string_view path,
                   const std::string& reason);

  LoginSettings settings_;
  std::shared_ptr<TokenReading> reading_;
  Sessions sessions_;
  LogSink log_;
  MonotonicTime log_again_at_{};
  std::uint64_t unlogged_ = 0;
};

/// A name as the evidence log and the log of the process have it: 1 to 64 visible characters of
/// ASCII. One that is longer or has others, which are written as `_`, ends with a digest of itself.
std::string source_name(std::string_view name);

/// Whether the client's connection comes from this machine.
bool is_local(const http::ServerStream& client);

}  // namespace idem::admin
