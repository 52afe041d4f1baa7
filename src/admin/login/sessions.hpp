#pragma once

#include "admin/login/role.hpp"
#include "core/bytes/digests.hpp"

#include <idem/record.hpp>

#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace idem::admin {

/// A browser that is logged in to the console.
struct Session {
  Caller caller;
  /// What each request that decides must repeat in the field `Idem-Csrf`. A page of another origin
  /// cannot read it, whatever it makes the browser send.
  std::string csrf;
};

/// The logins of browsers, in memory: a restart of the process ends them. A session never outlives
/// the token that it was begun with: ask Login::still_has() for its caller each time. One thread.
class Sessions {
 public:
  /// Begins one; where there are too many, of its token or in all, the one that was used least
  /// recently ends. Returns its id, 64 hexadecimal digits, which only the browser's cookie has.
  std::string begin(Caller caller, MonotonicTime now);
  /// The session of this id, which is used from now on; null: there is none, or its time is over.
  /// Valid until the next call.
  const Session* find(std::string_view id, MonotonicTime now);
  void end(std::string_view id);

  /// A code that begins one session for this caller, within limits::console_code_max.
  std::string make_code(Caller caller, MonotonicTime now);
  /// Whose code this is; it is good once. None: it was never made, was used, or its time is over.
  std::optional<Caller> redeem(std::string_view code, MonotonicTime now);

 private:
  void drop_beyond_limits(const std::optional<Digest>& token);

  struct Kept {
    Digest id;
    Session session;
    MonotonicTime begun;
    MonotonicTime used;
  };
  struct Code {
    Caller caller;
    MonotonicTime made;
  };

  std::list<Kept> sessions_;  ///< The one that was used last is the first.
  // By digests: how long a search takes tells nothing about an id.
  std::map<Digest, std::list<Kept>::iterator> by_id_;
  std::map<Digest, Code> codes_;
};

/// The session's cookie at the listener that a browser reaches by this Host. Browsers send a cookie
/// to all ports of a host, so the port is in its name: gateways of one machine end no session of
/// each other.
std::string cookie_name_at(std::string_view host);
/// The value of the cookie in a request's Cookie field; none: it has no such cookie, or several.
std::optional<std::string_view> cookie_in(std::string_view field, std::string_view name) noexcept;
/// A Set-Cookie that keeps the id in the browser until that ends (RFC 6265bis §4.1.3.2): for this
/// host and, but for loopback, secure connections only; out of reach for scripts and for requests
/// from other sites. An empty id removes the cookie.
std::string session_cookie(std::string_view name, std::string_view id);

}  // namespace idem::admin
