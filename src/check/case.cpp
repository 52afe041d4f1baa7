#include "check/case.hpp"

#include "check/patience.hpp"
#include "check/report/escape.hpp"
#include "check/wire/lost_answer.hpp"

#include <algorithm>
#include <thread>

namespace idem::check {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = CaseRun::Millis;

// A report shows what a reader can compare by eye.
constexpr std::size_t shown_bytes_max = 200;
// Of a race of a hundred, the first answers show what the others do.
constexpr std::size_t remembered_of_race_max = 6;

// Reports show less of a message; a hundred calls stay in memory until the run's end.
constexpr std::size_t remembered_bytes_max = 96UL * 1024;
// An operation that a request left without an answer has ended after so long, or never will.
constexpr std::chrono::seconds left_operation_max{5};

}  // namespace

std::string shown(const CaseRun::Sent& sent) {
  if (!sent) return "no answer (" + sent.error() + ")";
  std::string text = std::to_string(sent->status);
  const std::string& body = sent->excerpt.empty() ? sent->body : sent->excerpt;
  if (body.empty()) return text + " without a body";
  text += ' ' + body.substr(0, shown_bytes_max);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return body.size() > shown_bytes_max ? text + "..." : text;
}

bool is_same_answer(const Answer& a, const Answer& b) {
  return a.status == b.status && a.body == b.body;
}

bool is_same_result(const CaseRun& run, const Answer& a, const Answer& b) {
  if (!a.is_success() || !b.is_success()) return is_same_answer(a, b);
  const std::string id = run.resource_of(a);
  const std::string other = run.resource_of(b);
  // A replay without the Location that the file does not name: `replay.headers` judges that.
  const bool needs_both = run.has_location_as_id();
  const bool by_body = needs_both ? id.empty() || other.empty() : id.empty() && other.empty();
  return by_body ? a.body == b.body : id == other;
}

CaseRun::CaseRun(Api& api)
    : api_(api),
      is_begun_clean_(Clock::now() - api.last_left() > left_operation_max),
      effects_before_(api.effects()) {}

Millis CaseRun::since_begin() const {
  return std::chrono::duration_cast<Millis>(Clock::now() - begin_);
}

void CaseRun::remember(Call call, Sent& sent) {
  if (call.took == Millis(0)) call.took = since_begin() - call.began;
  api_.note_end(sent.has_value());
  const Secrets& secrets = api_.secrets();
  call.request = excerpt_of(secrets.masked(std::move(call.request)), remembered_bytes_max);
  call.answer = excerpt_of(
      secrets.masked_answer(sent && !api_.is_dry() ? sent->decoded() : std::move(call.answer)),
      remembered_bytes_max);
  // Masked first: what is cut within a secret is not found any more.
  if (sent) sent->excerpt = secrets.masked(sent->body).substr(0, shown_bytes_max + 1);
  if (!sent) sent = std::unexpected(secrets.in_sentence(sent.error()));
  if (!sent) call.failure = sent.error();
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  count(sent);
}

void CaseRun::count(const Sent& sent) {
  if (!sent) return;
  const std::lock_guard lock(mutex_);
  is_answered_ = true;
  if (!sent->is_success()) return;
  if (api_.difference() != Difference::id) {
    made_.insert(sent->body);
    return;
  }
  // An answer without an id, such as "processing", has made nothing.
  const std::string id = resource_of(*sent);
  if (!id.empty()) made_.insert(id);
}

CaseRun::Sent CaseRun::exchange(const Request& request, const std::string& what,
                                const std::function<void()>& on_sent) {
  const std::string bytes = request.bytes(api_.origin().authority());
  Call call{.what = what, .request = bytes, .answer = {}, .failure = {}, .began = since_begin()};
  auto sent = [&]() -> Sent {
    if (api_.is_dry()) return api_.pretended(what, bytes);
    auto connection = api_.connect();
    if (!connection) return std::unexpected(connection.error());
    if (auto done = connection->send(bytes, spec().timeout); !done) {
      // It may have answered before it read everything.
      auto early = connection->read(Millis(200), call.answer);
      if (early) return early;
      return std::unexpected(done.error());
    }
    if (on_sent) on_sent();
    return connection->read(spec().timeout, call.answer);
  }();
  remember(std::move(call), sent);
  return sent;
}

CaseRun::Sent CaseRun::send(const Request& request, std::string what) {
  for (int pauses = 0;; ++pauses) {
    auto sent = send_once(request, what);
    if (!sent || api_.is_dry() || !is_rate_limited(*sent, profile())) return sent;
    if (pauses == pauses_max) throw RateLimited{"The API limits the rate: " + shown(sent) + "."};
    api_.slow_down(pause_after(*sent));
  }
}

CaseRun::Sent CaseRun::send_once(const Request& request, const std::string& what) {
  api_.take_turn();
  return exchange(request, what);
}

std::future<CaseRun::Sent> CaseRun::begin(const Request& request, std::string what) {
  api_.take_turn();
  const auto is_sent = std::make_shared<std::promise<void>>();
  auto running = std::async(std::launch::async, [this, request, what = std::move(what), is_sent] {
    bool is_said = false;
    const auto say = [&] {
      if (!is_said) is_sent->set_value();
      is_said = true;
    };
    auto sent = exchange(request, what, say);
    say();
    return sent;
  });
  is_sent->get_future().wait();
  return running;
}

// The API has everything but the last byte of each first. One thread sends the last bytes, a
// few microseconds apart: threads that wake each other are milliseconds apart on a busy machine,
// and pass a window that an API has open.
std::vector<CaseRun::Sent> CaseRun::race(std::span<const Request> requests,
                                         const std::string& what) {
  api_.take_turn(requests.size());
  struct Contender {
    std::string bytes;
    Call call;
    std::optional<Connection> connection;
    Sent sent = std::unexpected("not sent");
  };
  std::vector<Contender> all(requests.size());
  const auto in_parallel = [&](const std::function<void(Contender&)>& step) {
    std::vector<std::jthread> threads;
    for (Contender& one : all) threads.emplace_back([&] { step(one); });
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    all[i].bytes = requests[i].bytes(api_.origin().authority());
    all[i].call = {
        .what = what + ", " + std::to_string(i + 1) + " of " + std::to_string(requests.size()),
        .request = all[i].bytes,
        .answer = {},
        .failure = {},
        .began = since_begin()};
    if (api_.is_dry()) all[i].sent = api_.pretended(all[i].call.what, all[i].bytes);
  }
  if (!api_.is_dry()) {
    in_parallel([&](Contender& one) {
      auto connection = api_.connect();
      if (!connection) {
        one.sent = std::unexpected(connection.error());
        return;
      }
      const auto sent = connection->send(
          std::string_view(one.bytes).substr(0, one.bytes.size() - 1), spec().timeout);
      if (!sent) one.sent = std::unexpected(sent.error());
      if (sent) one.connection = std::move(*connection);
    });
    for (Contender& one : all) {
      if (!one.connection) continue;
      one.call.began = since_begin();
      const auto sent = one.connection->send(
          std::string_view(one.bytes).substr(one.bytes.size() - 1), spec().timeout);
      if (!sent) one.sent = std::unexpected(sent.error());
      if (!sent) one.connection.reset();
    }
    in_parallel([&](Contender& one) {
      if (one.connection) one.sent = one.connection->read(spec().timeout, one.call.answer);
      one.call.took = since_begin() - one.call.began;
    });
  }
  for (Contender& one : all) remember(std::move(one.call), one.sent);
  forget_most_of_race();
  std::vector<Sent> sent;
  for (Contender& one : all) sent.push_back(std::move(one.sent));
  return sent;
}

// What stays, in its order: answers that differ, the race's winners, and then the first others.
void CaseRun::forget_most_of_race() {
  const std::lock_guard lock(mutex_);
  if (calls_.size() <= 2 * remembered_of_race_max) return;
  std::set<std::string> seen;
  std::vector<bool> stays;
  std::size_t kept = 0;
  for (const Call& call : calls_) {
    const std::string start = call.answer.substr(0, call.answer.find("\r\n"));
    const bool differs = seen.insert(start + call.failure).second || call.answer.contains(" 201 ");
    stays.push_back(differs && kept < remembered_of_race_max * 2);
    kept += stays.back() ? 1 : 0;
  }
  std::vector<Call> rest;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (!stays[i] && kept >= remembered_of_race_max) continue;
    kept += stays[i] ? 0 : 1;
    rest.push_back(std::move(calls_[i]));
  }
  calls_ = std::move(rest);
}

CaseRun::Sent CaseRun::until_settled(const Request& request, const std::string& what, Millis most) {
  const auto until = Clock::now() + most;
  for (Millis wait(100);; wait = std::min<Millis>(wait * 2, Millis(1'000))) {
    auto sent = send(request, what);
    if (sent && !is_in_flight(*sent)) return sent;
    if (api_.is_dry()) return sent;
    const Millis rest = sent ? advised_wait(*sent, wait, Millis(1'000)) : wait;
    if (Clock::now() + rest >= until) return sent;
    std::this_thread::sleep_for(rest);
  }
}

std::expected<void, std::string> CaseRun::send_and_leave(std::string_view bytes, std::string what,
                                                         bool after_first_byte) {
  api_.take_turn();
  Call call{.what = std::move(what),
            .request = std::string(bytes),
            .answer = {},
            .failure = {},
            .began = since_begin()};
  if (api_.is_dry()) {
    api_.pretended(call.what, call.request);
    return {};
  }
  auto connection = api_.connect();
  if (!connection) {
    Sent none = std::unexpected(connection.error());
    remember(std::move(call), none);
    return std::unexpected(none.error());
  }
  auto sent = connection->send(bytes, spec().timeout);
  if (sent && after_first_byte) connection->wait_for_byte(spec().timeout);
  // The API has it in its buffers; what it makes of a client that is gone is the question.
  if (!after_first_byte) std::this_thread::sleep_for(Millis(30));
  connection->reset();
  Sent left = std::unexpected("the client left");
  remember(std::move(call), left);
  return sent;
}

CaseRun::Sent CaseRun::send_and_lose_answer(const Request& request, const std::string& what) {
  api_.take_turn();
  if (api_.is_dry()) return api_.pretended(what, request.bytes(api_.origin().authority()));
  auto proxy = LostAnswer::listen(api_.origin(), spec().timeout, api_.insecure());
  if (!proxy) return std::unexpected(proxy.error());
  const std::string bytes = request.bytes(api_.origin().authority());
  Call call{.what = what, .request = bytes, .answer = {}, .failure = {}, .began = since_begin()};
  auto client = Connection::open(proxy->origin(), spec().timeout, false);
  if (!client) return std::unexpected(client.error());
  if (auto sent = client->send(bytes, spec().timeout); !sent) return std::unexpected(sent.error());
  // The proxy ends the connection once the API has answered, or after its own timeout.
  client->read(spec().timeout * 2, call.answer);
  Sent none = std::unexpected("the proxy lost the answer");
  remember(std::move(call), none);
  auto answer = proxy->answer();
  api_.note_end(answer.has_value());
  if (answer) answer->excerpt = api_.secrets().masked(answer->body).substr(0, shown_bytes_max + 1);
  count(answer);
  return answer;
}

std::expected<std::int64_t, std::string> CaseRun::executed() {
  if (api_.is_dry()) return 0;
  if (spec().effects) {
    if (!effects_before_) return std::unexpected(effects_before_.error());
    auto now = api_.effects();
    if (!now) return now;
    return *now - *effects_before_;
  }
  const std::lock_guard lock(mutex_);
  const auto different = static_cast<std::int64_t>(made_.size());
  switch (api_.difference()) {
    case Difference::id:
      return different;
    case Difference::body:
      if (different <= 1) return different;
      return std::unexpected("the answers differ, and neither `effects` nor `resource` is set");
    case Difference::none:
      break;
  }
  if (different == 0) return 0;
  return std::unexpected(
      "the answers to two operations do not differ by an id, and `effects` is not set");
}

std::expected<std::int64_t, std::string> CaseRun::executed_so_far() const {
  if (!effects_before_) return std::unexpected(effects_before_.error());
  auto now = api_.effects_now();
  if (!now) return now;
  return *now - *effects_before_;
}

std::optional<bool> CaseRun::is_result_of_first(const Answer& first, const Answer& other) {
  if (has_effects()) {
    const auto number = executed();
    if (number && *number >= 2) return false;
  }
  switch (api_.difference()) {
    case Difference::id:
      return is_same_result(*this, first, other);
    case Difference::body:
      return first.body == other.body;
    case Difference::none:
      break;
  }
  if (first.body != other.body) return false;
  return std::nullopt;
}

bool CaseRun::is_in_flight(const Answer& answer) const {
  if (std::ranges::find(profile().in_flight, answer.status) != profile().in_flight.end())
    return true;
  return answer.status == 409 || answer.status == 425 || answer.status == 429 ||
         answer.status == 503;
}

}  // namespace idem::check
