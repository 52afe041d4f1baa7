#include "gateway/passthrough/tunnel.hpp"

#include "loop/latch.hpp"

#include <memory>

namespace idem::gateway {
namespace {

using http::Wire;

class Tunnel {
 public:
  Tunnel(http::ServerStream& client, Wire& upstream, Millis idle)
      : client_(client), upstream_(upstream), idle_(idle) {}

  Task<void> run() {
    const http::ServerStream::CutAtDrain cut(client_, &upstream_);
    client_.wire().unpin();
    upstream_.unpin();
    touch();
    auto uploaded = std::make_shared<Latch>(client_.loop());
    client_.loop().spawn(upload(uploaded));
    const End end = co_await copy(upstream_, client_.wire());
    switch (end) {
      case End::whole:
        co_await client_.wire().shutdown_send();
        break;
      case End::source_broke:
      case End::sink_broke:
      case End::stopped:
        client_.abort_stream();
        stop();
        break;
    }
    co_await uploaded->wait();
  }

 private:
  enum class End : std::uint8_t { whole, source_broke, sink_broke, stopped };

  Task<void> upload(std::shared_ptr<Latch> uploaded) {
    const End end = co_await copy(client_.wire(), upstream_);
    switch (end) {
      case End::whole:
        co_await upstream_.shutdown_send();
        break;
      case End::sink_broke:
        // The upstream's last bytes are still read, up to its own end.
        break;
      case End::source_broke:
      case End::stopped:
        stop();
        break;
    }
    uploaded->open();
  }

  Task<End> copy(Wire& from, Wire& to) {
    while (!stopped_ && !client_.draining()) {
      if (from.unread().empty()) {
        const std::size_t got = co_await from.read_some();
        if (got == 0) {
          const bool whole = from.trouble() == Wire::Trouble::eof && !stopped_;
          co_return whole ? End::whole : End::source_broke;
        }
        touch();
        continue;
      }
      const std::size_t taken = to.write_now(from.unread());
      if (taken > 0) {
        from.consume(taken);
        touch();
        continue;
      }
      // A side that has sent its end may still receive.
      const auto trouble = to.trouble();
      if (trouble != Wire::Trouble::none && trouble != Wire::Trouble::eof) {
        co_return End::sink_broke;
      }
      const bool writable = co_await to.wait_writable();
      if (!writable) co_return End::sink_broke;
    }
    co_return End::stopped;
  }

  // Both at once: bytes one way show that the other is in use.
  void touch() noexcept {
    const MonotonicTime end = MonotonicClock::now() + idle_;
    client_.wire().deadline(end);
    upstream_.deadline(end);
  }

  void stop() noexcept {
    stopped_ = true;
    client_.wire().cancel();
    upstream_.cancel();
  }

  http::ServerStream& client_;
  Wire& upstream_;
  Millis idle_;
  bool stopped_ = false;
};

}  // namespace

Task<void> run_tunnel(http::ServerStream& client, Wire& upstream, Millis idle) {
  Tunnel tunnel(client, upstream, idle);
  co_await tunnel.run();
}

}  // namespace idem::gateway
