#pragma once

#include "loop/asio_names.hpp"

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <utility>

/// The door by which Asio enters: one executor type, spelt out, so that nothing is type-erased.
/// Included by the files that open sockets or start timers; no header does.
namespace idem {

using Executor = asio::io_context::executor_type;
using LoopTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, Executor>;

/// A class and no alias, so that headers can name it without Asio.
class Socket : public asio::basic_stream_socket<asio::ip::tcp, Executor> {
 public:
  using Stream = asio::basic_stream_socket<asio::ip::tcp, Executor>;
  using Stream::Stream;
  // What an acceptor gives.
  Socket(Stream&& accepted) noexcept : Stream(std::move(accepted)) {}
};

}  // namespace idem
