#include "check/api.hpp"

#include "check/replace_all.hpp"
#include "core/bytes/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace idem::check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view interrupted = "it was interrupted";
constexpr double after_race_max = 0.5;  // Seconds.
// What an API that limits the rate gets in the end; the run must come to one.
constexpr double slowest_per_second = 1;
constexpr double unlimited_slowed_to = 20;

}  // namespace

Api::Api(const Spec& spec, Origin origin, Manners manners, std::uint64_t seed)
    : spec_(spec),
      key_form_(
          spec.key_form.value_or(spec.profile.accepts_strings ? KeyForm::string : KeyForm::bare)),
      origin_(std::move(origin)),
      manners_(std::move(manners)),
      per_second_(manners_.per_second),
      // Not of the printed seed: a run that is repeated must not find the keys of the one before.
      run_(std::random_device()()),
      secrets_(spec) {
  choose_mark();
  random_.seed(seed ^ (std::uint64_t{run_} << 32));
}

void Api::choose_mark() {
  mark_ = key_form_ == KeyForm::uuid ? fmt::format("1de3c4ec-{:04x}", run_ & 0xFFFF)
                                     : fmt::format("idem-check-{:08x}", run_);
}

std::string Api::new_key() {
  const std::lock_guard lock(mutex_);
  ++made_;
  const std::uint64_t some = random_();
  if (key_form_ == KeyForm::uuid) {
    return fmt::format("{}-4{:03x}-8{:03x}-{:012x}", mark_, made_ & 0xFFF, (made_ >> 12) & 0xFFF,
                       some & 0xFFFF'FFFF'FFFF);
  }
  return fmt::format("{}-{}-{:08x}", mark_, made_, some & 0xFFFF'FFFF);
}

Order Api::order() {
  Order order{.key = new_key(), .amount = {}, .unique = {}};
  const std::lock_guard lock(mutex_);
  order.amount = std::to_string(spec_.amount + static_cast<std::int64_t>(made_ % 900));
  order.unique = fmt::format("{}-{}", mark_, made_);
  return order;
}

std::string Api::written(const std::string& key) const {
  return key_form_ == KeyForm::string ? '"' + key + '"' : key;
}

std::string Api::filled(std::string text, const Order& order) {
  replace_all(text, "{{amount}}", order.amount);
  replace_all(text, "{{unique}}", order.unique);
  return text;
}

Request Api::build(const Order& order) const {
  const Variation& changes = order.changes;
  Request request{.method = spec_.method,
                  .target = filled(spec_.path, order),
                  .fields = {},
                  .body = filled(changes.body.value_or(spec_.body), order)};
  if (changes.query) {
    request.target += (request.target.contains('?') ? '&' : '?') + filled(*changes.query, order);
  }
  for (const auto& [name, value] : spec_.headers) request.set(name, filled(value, order));
  for (const auto& [name, value] : changes.headers) request.set(name, filled(value, order));
  if (!order.key.empty()) request.set(spec_.key_header, written(order.key));
  return request;
}

void Api::take_turn(std::size_t requests) {
  end_if_interrupted();
  if (requests_.load() + requests > manners_.requests_max) {
    throw RunEnded{"its limit of " + std::to_string(manners_.requests_max) +
                   " requests (--max-requests) is reached"};
  }
  requests_ += requests;
  const double per_second = per_second_.load();
  if (is_dry() || per_second <= 0) return;
  Clock::time_point turn;
  {
    const std::lock_guard lock(mutex_);
    turn = std::max(next_turn_, Clock::now());
    // After a race nobody waits for as long as its requests would have taken one by one.
    const double each = 1 / per_second;
    const double wait =
        std::min(static_cast<double>(requests) * each, std::max(after_race_max, each));
    next_turn_ =
        turn + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wait));
  }
  wait_until(turn);
}

void Api::slow_down(std::chrono::milliseconds pause) {
  const std::lock_guard lock(mutex_);
  const double now = per_second_.load();
  const double slower =
      now <= 0 ? unlimited_slowed_to : std::max(now / 2, std::min(now, slowest_per_second));
  per_second_ = slower;
  next_turn_ = std::max(next_turn_, Clock::now() + pause);
}

std::expected<Connection, std::string> Api::connect() const {
  return Connection::open(origin_, spec_.timeout, manners_.insecure);
}

std::expected<void, std::string> Api::repeat(std::chrono::milliseconds most,
                                             const Attempt& attempt) const {
  const auto until = Clock::now() + most;
  for (;;) {
    auto done = attempt();
    if (done || Clock::now() >= until) return done;
    wait_until(Clock::now() + std::chrono::milliseconds(200));
  }
}

std::expected<void, std::string> Api::accepts_connections(std::chrono::milliseconds most) const {
  return repeat(most, [this]() -> std::expected<void, std::string> {
    const auto connection = connect();
    if (!connection) return std::unexpected(connection.error());
    return {};
  });
}

std::expected<void, std::string> Api::answers(std::chrono::milliseconds most) const {
  const Request request{.method = "GET", .target = "/", .fields = {}, .body = {}};
  return repeat(most, [&]() -> std::expected<void, std::string> {
    auto connection = connect();
    if (!connection) return std::unexpected(connection.error());
    auto sent = connection->send(request.bytes(origin_.authority()), spec_.timeout);
    if (!sent) return sent;
    std::string seen;
    const auto answer = connection->read(spec_.timeout, seen);
    if (!answer) return std::unexpected(answer.error());
    return {};
  });
}

void Api::end_if_interrupted() const {
  if (is_interrupted()) throw RunEnded{std::string(interrupted)};
}

void Api::wait_until(Clock::time_point until) const {
  while (Clock::now() < until) {
    end_if_interrupted();
    std::this_thread::sleep_until(std::min(until, Clock::now() + std::chrono::milliseconds(100)));
  }
}

Answer Api::pretended(const std::string& what, std::string bytes) const {
  manners_.dry_run(what, secrets_.masked(std::move(bytes)));
  Answer answer;
  answer.status = 201;
  answer.bytes = "HTTP/1.1 201 Created\r\n\r\n";
  return answer;
}

}  // namespace idem::check
