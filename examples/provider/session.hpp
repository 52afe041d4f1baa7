#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "ledger.hpp"

namespace provider {

using Executor = boost::asio::io_context::executor_type;
using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
using Clock = std::chrono::steady_clock;
using Timer = boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor>;
using Task = boost::asio::awaitable<void, Executor>;

/// A named place where requests wait until a test lets them go on.
struct Hold {
  explicit Hold(const Executor& executor) : changed(executor, Timer::time_point::max()) {}

  std::size_t waiting = 0;
  std::uint64_t releases = 0;
  Timer changed;  ///< Never fires; cancelled to wake everyone who waits for a change.
};

/// All that one provider knows. One thread owns it.
struct World {
  explicit World(Executor e) : executor(std::move(e)) {}

  Hold& hold(const std::string& name) { return holds.try_emplace(name, executor).first->second; }

  Executor executor;
  bool quiet = false;
  Ledger ledger;
  std::map<std::string, Hold> holds;
  std::mt19937_64 nonce{std::random_device{}()};
};

/// Serves one connection until it closes. Never throws.
Task serve(Socket socket, World& world);

}  // namespace provider
