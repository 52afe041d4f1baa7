#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "armed_faults.hpp"
#include "deduplication.hpp"
#include "inbox.hpp"
#include "ledger.hpp"

namespace provider {

namespace asio = boost::asio;

using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
using Clock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;
using Task = asio::awaitable<void, Executor>;
constexpr auto token = asio::as_tuple(asio::use_awaitable_t<Executor>{});

/// A named place where requests wait until a test lets them go on.
struct Hold {
  explicit Hold(const Executor& executor) : changed(executor, Timer::time_point::max()) {}

  std::size_t waiting = 0;
  std::uint64_t releases = 0;
  Timer changed;  ///< Never fires; cancelled to wake all that wait for a change.
};

/// The receiver of events about charges.
struct Receiver {
  std::string host;
  std::string port = "80";
  std::string path = "/";
  std::string secret{};
};

/// Counts of events. `events` is `lost` plus those with a delivery. A delivery ends as delivered or
/// given up; a repeated event has two.
struct WebhookCounts {
  std::uint64_t events = 0;
  std::uint64_t lost = 0;
  std::uint64_t attempts = 0;
  std::uint64_t delivered = 0;
  std::uint64_t given_up = 0;
  std::uint64_t under_way = 0;
};

/// How the query API behaves.
struct Queries {
  int status = 0;                            ///< The status of all answers; 0: it works.
  std::chrono::milliseconds shown_after{0};  ///< The time until a charge is listed.
};

/// All state of one provider. One thread owns it.
struct World {
  explicit World(Executor e) : executor(std::move(e)) {}

  Hold& hold(const std::string& name) { return holds.try_emplace(name, executor).first->second; }

  Executor executor;
  bool quiet = false;
  Ledger ledger{};
  Deduplication deduplication{};
  ArmedFaults armed{};
  Queries queries{};
  Inbox inbox{};
  std::optional<Receiver> receiver{};
  WebhookCounts webhooks{};
  std::map<std::string, Hold> holds{};
  std::mt19937_64 nonce{std::random_device{}()};
};

/// Waits in this hold until it is released.
Task wait_in(Hold& hold);
/// No wait at all for 0.
Task pause(std::chrono::milliseconds time, Executor executor);

}  // namespace provider
