#include "loop/watched_socket.hpp"

#include "loop/asio.hpp"

#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include <utility>

namespace idem {

struct WatchedSocket::Descriptor : asio::posix::basic_stream_descriptor<Executor> {
  using basic_stream_descriptor::basic_stream_descriptor;
};

WatchedSocket::WatchedSocket(Loop& loop, int socket)
    : descriptor_(std::make_unique<Descriptor>(loop.context(), socket)) {}

WatchedSocket::~WatchedSocket() { descriptor_->release(); }

void WatchedSocket::wait(Way way, Resumption<bool> done) {
  const auto event = way == Way::readable ? Descriptor::wait_read : Descriptor::wait_write;
  descriptor_->async_wait(
      event,
      [done = std::move(done)](const boost::system::error_code& error) mutable { done(!error); });
}

void WatchedSocket::cancel() { descriptor_->cancel(); }

}  // namespace idem
