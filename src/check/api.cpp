#include "check/api.hpp"

#include "core/bytes/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <thread>

namespace idem::check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view interrupted = "it was interrupted";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

/// A field that has a credential by its name.
bool is_secret_field(std::string_view name) {
  static constexpr std::array<std::string_view, 7> parts{
      "authorization", "cookie", "token", "secret", "api-key", "apikey", "password"};
  const std::string small = lower(name);
  return std::ranges::any_of(parts, [&](std::string_view part) { return small.contains(part); });
}

std::string filled_in(std::string text, const Order& order) {
  replace_all(text, "{{amount}}", order.amount);
  replace_all(text, "{{unique}}", order.unique);
  return text;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Api::Api(const Spec& spec, Origin origin, Manners manners, std::uint64_t seed)
    : spec_(spec),
      key_form_(
          spec.key_form.value_or(spec.profile.accepts_strings ? KeyForm::string : KeyForm::bare)),
      origin_(std::move(origin)),
      manners_(std::move(manners)) {
  // Not of the printed seed: a run that is repeated must not find the keys of the one before.
  std::random_device device;
  const std::uint32_t run = device();
  mark_ = key_form_ == KeyForm::uuid ? fmt::format("1de3c4ec-{:04x}", run & 0xFFFF)
                                     : fmt::format("idem-check-{:08x}", run);
  random_.seed(seed ^ (std::uint64_t{run} << 32));
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

std::expected<void, std::string> Api::calibrate() {
  const bool is_given = spec_.key_form.has_value();
  for (;;) {
    take_turn();
    const Request request = build(order());
    if (is_dry()) {
      pretended("the first of all requests", request.bytes(origin_.authority()));
      return {};
    }
    auto connection = connect();
    if (!connection) return std::unexpected(connection.error());
    std::string seen;
    auto sent = connection->send(request.bytes(origin_.authority()), spec_.timeout);
    if (!sent) return std::unexpected(sent.error());
    const auto answer = connection->read(spec_.timeout, seen);
    if (!answer) return std::unexpected(answer.error());
    if (answer->is_success()) return {};
    if (!is_given && key_form_ == KeyForm::string && answer->is_refusal()) {
      key_form_ = KeyForm::bare;
      continue;
    }
    return std::unexpected("the API answered the request of the file with " +
                           std::to_string(answer->status) + ' ' +
                           masked(answer->body.substr(0, 300)));
  }
}

std::string Api::written(const std::string& key) const {
  return key_form_ == KeyForm::string ? '"' + key + '"' : key;
}

Request Api::build(const Order& order) const {
  const Variation& changes = order.changes;
  Request request{.method = spec_.method,
                  .target = filled_in(spec_.path, order),
                  .fields = {},
                  .body = filled_in(changes.body.value_or(spec_.body), order)};
  if (changes.query) {
    request.target += (request.target.contains('?') ? '&' : '?') + *changes.query;
  }
  for (const auto& [name, value] : spec_.headers) request.set(name, filled_in(value, order));
  for (const auto& [name, value] : changes.headers) request.set(name, filled_in(value, order));
  if (!order.key.empty()) request.set(spec_.key_header, written(order.key));
  return request;
}

void Api::take_turn(std::size_t requests) {
  if (is_interrupted()) throw RunEnded{std::string(interrupted)};
  if (requests_.load() + requests > manners_.requests_max) {
    throw RunEnded{"its limit of " + std::to_string(manners_.requests_max) +
                   " requests (--max-requests) is reached"};
  }
  requests_ += requests;
  if (is_dry() || manners_.per_second <= 0) return;
  Clock::time_point turn;
  {
    const std::lock_guard lock(mutex_);
    turn = std::max(next_turn_, Clock::now());
    const double wait = static_cast<double>(requests) / manners_.per_second;
    next_turn_ = turn + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::min(wait, 0.5)));
  }
  std::this_thread::sleep_until(turn);
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

void Api::wait_until(Clock::time_point until) const {
  while (Clock::now() < until) {
    if (is_interrupted()) throw RunEnded{std::string(interrupted)};
    std::this_thread::sleep_until(std::min(until, Clock::now() + std::chrono::milliseconds(100)));
  }
}

Answer Api::pretended(const std::string& what, std::string bytes) const {
  manners_.dry_run(what, masked(std::move(bytes)));
  Answer answer;
  answer.status = 201;
  answer.bytes = "HTTP/1.1 201 Created\r\n\r\n";
  return answer;
}

std::expected<std::string, std::string> Api::effects_text() const {
  const auto& effects = *spec_.effects;
  if (!effects.command.empty()) return run_command(effects.command);
  auto got = fetch(effects.url, effects.headers, spec_.timeout, manners_.insecure);
  if (!got) return std::unexpected("`effects.url` does not answer: " + got.error());
  return got;
}

std::expected<std::int64_t, std::string> Api::effects() const {
  if (!spec_.effects || is_dry()) return 0;
  auto text = effects_text();
  if (!text) return std::unexpected(text.error());
  std::string number = *text;
  if (spec_.effects->pointer) {
    if (!check_json(*text)) return std::unexpected("the answer of `effects` is not JSON: " + *text);
    const auto found = spec_.effects->pointer->find(*text);
    const auto scalar = found ? scalar_of(*found) : std::nullopt;
    if (!scalar) return std::unexpected("the answer of `effects` has no value at its pointer");
    number = *scalar;
  }
  const auto whole = whole_number(number);
  if (!whole) return std::unexpected("the answer of `effects` is not a whole number: " + number);
  return *whole;
}

std::string Api::masked(std::string text) const {
  for (const std::string& secret : spec_.secrets) replace_all(text, secret, "***");
  for (const auto& [name, value] : spec_.headers) {
    if (is_secret_field(name)) replace_all(text, value, "***");
  }
  return text;
}

std::expected<std::string, std::string> run_command(const std::string& command) {
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::unexpected("the command cannot be run: " + command);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    if (text.size() < 1024UL * 1024) text.append(buffer.data(), got);
  }
  if (::pclose(pipe) != 0) return std::unexpected("the command failed: " + command);
  return text;
}

}  // namespace idem::check
