#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

/// The door by which Asio enters: one executor type, spelt out, so that nothing is type-erased.
namespace idem {

namespace asio = boost::asio;

using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;

}  // namespace idem
