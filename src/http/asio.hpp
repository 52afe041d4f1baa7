#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

/// The door by which Asio enters: one executor type, spelt out, so that nothing is type-erased.
namespace idem::http {

namespace asio = boost::asio;

using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;

/// A coroutine that runs on one loop's thread. GCC 12 miscompiles capturing lambdas and temporaries
/// with destructors inside a co_await expression: name the operand first.
template <class T>
using Task = asio::awaitable<T, Executor>;

inline constexpr asio::use_awaitable_t<Executor> resume{};

}  // namespace idem::http
