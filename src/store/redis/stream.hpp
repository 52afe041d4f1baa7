#pragma once

#include "loop/loop.hpp"
#include "store/redis/url.hpp"

#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

/// Bytes to and from a server, with TLS or without. OpenSSL's TLS enters this store only here.
namespace idem::redis {

struct ClientTls;
using TlsContext = std::shared_ptr<ClientTls>;

/// Null if `tls` is off. Reads the files.
std::expected<TlsContext, std::string> make_tls_context(const Tls& tls);

/// One connection. Loop's thread only; handlers under way keep the memory that they use, so it may
/// be dropped at any moment.
class Stream {
 public:
  using Done = std::move_only_function<void(const boost::system::error_code&, std::size_t)>;
  virtual ~Stream() = default;
  virtual void read_some(std::span<char> into, Done done) = 0;
  virtual void write_all(std::string_view from, Done done) = 0;
  /// At once; operations under way end with an error.
  virtual void close() noexcept = 0;
};

/// Connects within `patience`; with `context` also shakes hands, and checks that the certificate is
/// of that host. Looking up a name blocks nothing.
Task<std::expected<std::shared_ptr<Stream>, std::string>> connect(Loop& loop, Address to,
                                                                  TlsContext context,
                                                                  Millis patience);

}  // namespace idem::redis
