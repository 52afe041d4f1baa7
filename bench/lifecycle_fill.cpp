#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>
#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <latch>
#include <string>
#include <vector>

/// Makes a store with work for sweeper, reaper and reconciler that becomes due when it is wanted:
/// `lifecycle_fill URL LIVE WAIT WINDOW...`, a window being OFFSET:LASTS:ANSWERS:TOMBSTONES:LEASES
///
/// LIVE answers are kept for a day. WAIT seconds from their end is the moment from which the
/// windows' offsets count. In a window the retention of ANSWERS ends, and that of TOMBSTONES
/// tombstones, and the leases of LEASES attempts that were dispatched, so that they become unknown:
/// evenly over LASTS seconds, or, where that is 0, all at once. No clock is moved for it: each
/// record is made with just the time that it needs.
///
/// Prints that moment in seconds of CLOCK_MONOTONIC.

namespace {

using namespace idem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t at_once = 256;
const std::string answer_body(200, 'x');

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "lifecycle_fill: {}\n", why);
  std::exit(1);
}

/// Ids are digests in real life: spread over all there are.
RecordId id_of(std::uint64_t number) {
  RecordId id;
  std::uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
  mixed ^= mixed >> 32;
  std::memcpy(id.bytes.data(), &mixed, sizeof mixed);
  std::memcpy(id.bytes.data() + sizeof mixed, &number, sizeof number);
  return id;
}

constexpr Millis a_day = 24h;
constexpr Millis a_month = 24h * 30;

struct Times {
  Millis retention = a_day;
  Millis tombstone = a_month;
};

class Filler {
 public:
  explicit Filler(Store& store) : store_(store) {}

  /// Calls `times(i)` just before the i-th record is made.
  void complete(std::uint64_t count, const std::function<Times(std::uint64_t)>& times) {
    each(count, [&](std::uint64_t number, std::uint64_t i, std::function<void()> done) {
      Reserve verb = reserve_of(number);
      const Times its = times(i);
      verb.retention = its.retention;
      verb.tombstone = its.tombstone;
      ask(store_, std::move(verb), [this, done = std::move(done)](auto outcome) {
        if (!outcome) fail(outcome.error().detail);
        const auto& granted = std::get<Execute>(*outcome);
        Complete completion;
        completion.id = granted.id;
        completion.attempt = granted.attempt;
        completion.response = {201, {{"Content-Type", "application/json"}}, answer_body};
        ask(store_, std::move(completion), [done = std::move(done)](auto reply) {
          if (!reply || reply->verdict != Verdict::done) fail("a completion was refused");
          done();
        });
      });
    });
  }

  void abandon(std::uint64_t count, const std::function<Millis(std::uint64_t)>& lease) {
    each(count, [&](std::uint64_t number, std::uint64_t i, std::function<void()> done) {
      Reserve verb = reserve_of(number);
      verb.dispatched = true;
      verb.lease = lease(i);
      ask(store_, std::move(verb), [done = std::move(done)](auto outcome) {
        if (!outcome) fail(outcome.error().detail);
        if (!std::holds_alternative<Execute>(*outcome)) {
          fail(fmt::format("a new key was answered by outcome {}", outcome->index()));
        }
        done();
      });
    });
  }

  void reap(std::uint64_t count) {
    while (count > 0) {
      const auto reaped = ask_and_wait(store_, Reap{limits::sweep_batch});
      if (!reaped) fail(reaped.error().detail);
      count -= std::min<std::uint64_t>(count, reaped->size());
    }
  }

 private:
  using Step = std::function<void(std::uint64_t number, std::uint64_t i, std::function<void()>)>;

  void each(std::uint64_t count, const Step& step) {
    std::atomic<std::uint64_t> next{0};
    std::latch chains(at_once);
    std::function<void()> go_on = [&] {
      const std::uint64_t i = next.fetch_add(1);
      if (i >= count) return chains.count_down();
      step(first_ + i, i, go_on);
    };
    for (std::size_t i = 0; i < at_once; ++i) go_on();
    chains.wait();
    first_ += count;
  }

  Reserve reserve_of(std::uint64_t number) const {
    Reserve verb;
    verb.id = id_of(number);
    verb.scope = "bench";
    verb.operation = "POST /v1/payments";
    verb.fingerprints.resize(1);
    verb.token = random_token();
    verb.owner = "a node that is gone";
    verb.lease = 60s;
    verb.retention = a_day;
    verb.tombstone = a_month;
    verb.quota = Quota{.stored_bytes = limits::stored_bytes_default};
    verb.generation = store_.identity().generation;
    return verb;
  }

  Store& store_;
  std::uint64_t first_ = 0;
};

struct Window {
  double offset = 0;
  double lasts = 0;
  std::uint64_t answers = 0;
  std::uint64_t tombstones = 0;
  std::uint64_t leases = 0;
};

Window window_of(const char* text) {
  Window made;
  if (std::sscanf(text, "%lf:%lf:%lu:%lu:%lu", &made.offset, &made.lasts, &made.answers,
                  &made.tombstones, &made.leases) != 5) {
    fail(std::string("no window: ") + text);
  }
  return made;
}

/// From now to the i-th of `count` moments of a window that counts from `start`.
Millis until(Clock::time_point start, const Window& window, std::uint64_t i, std::uint64_t count) {
  const double part = static_cast<double>(i) / static_cast<double>(count);
  const std::chrono::duration<double> offset(window.offset + window.lasts * part);
  const auto left = std::chrono::duration_cast<Millis>(start + offset - Clock::now());
  if (left < 1ms) fail("it was due before it was made: more WAIT is needed");
  return left;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: lifecycle_fill URL LIVE WAIT WINDOW...\n");
    return 2;
  }
  auto store = open_store(argv[1], {.scope_source = "header:X-Tenant-Id"});
  if (!store) fail(store.error());
  Filler filler(**store);
  filler.complete(std::strtoull(argv[2], nullptr, 10), [](std::uint64_t) { return Times{}; });

  const auto start = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::atof(argv[3])));
  std::vector<Window> windows;
  for (int i = 4; i < argc; ++i) windows.push_back(window_of(argv[i]));
  for (const Window& window : windows) {
    filler.complete(window.tombstones, [&](std::uint64_t i) {
      return Times{.retention = 1ms, .tombstone = until(start, window, i, window.tombstones)};
    });
    filler.reap(window.tombstones);
  }
  for (const Window& window : windows) {
    filler.complete(window.answers, [&](std::uint64_t i) {
      return Times{.retention = until(start, window, i, window.answers)};
    });
    filler.abandon(window.leases,
                   [&](std::uint64_t i) { return until(start, window, i, window.leases); });
  }
  store->reset();
  fmt::print("{:.3f}\n", std::chrono::duration<double>(start.time_since_epoch()).count());
  return 0;
}
