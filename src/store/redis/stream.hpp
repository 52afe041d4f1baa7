#pragma once

#include "loop/loop.hpp"
#include "store/redis/url.hpp"

#include <boost/asio/ssl/context.hpp>

#include <expected>
#include <memory>
#include <string>

/// Bytes to and from a server, with TLS or without. OpenSSL's TLS enters this store only here.
namespace idem::redis {

using TlsContext = std::shared_ptr<asio::ssl::context>;

/// Null if `tls` is off. Reads the files.
std::expected<TlsContext, std::string> make_tls_context(const Tls& tls);

/// One connection. Loop's thread only; handlers under way keep the memory that they use, so it may
/// be dropped at any moment.
class Stream {
 public:
  using Read = std::move_only_function<void(boost::system::error_code, std::size_t)>;
  virtual ~Stream() = default;
  virtual void read_some(asio::mutable_buffer into, Read done) = 0;
  virtual void write_all(asio::const_buffer from, Read done) = 0;
  /// At once; operations under way end with an error.
  virtual void close() noexcept = 0;
};

/// Connects within `patience`; with `context` also shakes hands, and checks that the certificate is
/// of that host. Looking up a name blocks nothing.
Task<std::expected<std::shared_ptr<Stream>, std::string>> connect(Loop& loop, Address to,
                                                                  TlsContext context,
                                                                  Millis patience);

}  // namespace idem::redis
