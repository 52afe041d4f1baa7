#include "store/circuit_breaker.hpp"

#include <idem/fingerprint.hpp>
#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <fmt/core.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <latch>
#include <vector>

/// Durable reserve + complete pairs per second: `store_bench [STORE-URL] [pairs] [AT-ONCE... |
/// replay]`; "breaker+" before the URL puts a gateway's circuit breaker before it. Each of N chains
/// asks for a reserve, then completes it, then goes on with a new key. SHARDS: of embedded:.

namespace {

using namespace idem;
using Clock = std::chrono::steady_clock;

Reserve a_reserve(const Store& store, const RecordId& id) {
  Reserve verb;
  verb.id = id;
  verb.scope = "tenant-17";
  verb.operation = "POST /v1/payments";
  verb.fingerprints.resize(1);
  verb.token.bytes = id.bytes;
  verb.owner = "node-1";
  verb.lease = std::chrono::seconds(60);
  verb.retention = std::chrono::hours(24);
  verb.tombstone = std::chrono::hours(720);
  verb.generation = store.identity().generation;
  return verb;
}

Complete a_complete(const Execute& execute) {
  Complete verb;
  verb.id = execute.id;
  verb.attempt = execute.attempt;
  verb.response = {201,
                   {{"Content-Type", "application/json"}, {"Location", "/v1/payments/pay_1"}},
                   R"({"id":"pay_1","amount":1999,"currency":"EUR","status":"succeeded"})"};
  return verb;
}

class Chains {
 public:
  Chains(Store& store, std::uint64_t pairs, std::size_t concurrency)
      : store_(store),
        left_(static_cast<std::int64_t>(pairs)),
        running_(static_cast<std::ptrdiff_t>(concurrency)) {
    random_bytes(seed_.bytes);
  }

  void run(std::size_t concurrency) {
    for (std::size_t i = 0; i < concurrency; ++i) reserve();
    running_.wait();
  }

 private:
  /// Ids are digests in real life: spread over the whole index.
  RecordId next_id() {
    RecordId id = seed_;
    std::uint64_t own = 0;
    std::memcpy(&own, seed_.bytes.data(), sizeof own);
    std::uint64_t mixed = own + (next_.fetch_add(1) + 1) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 29;
    mixed *= 0xbf58476d1ce4e5b9u;
    std::memcpy(id.bytes.data(), &mixed, sizeof mixed);
    return id;
  }

  void reserve() {
    if (left_.fetch_sub(1) <= 0) return running_.count_down();
    Reserve verb = a_reserve(store_, next_id());
    ask(store_, std::move(verb), [this](std::expected<ReserveOutcome, StoreError> outcome) {
      if (!outcome) std::abort();
      complete(std::get<Execute>(*outcome));
    });
  }

  void complete(const Execute& execute) {
    Complete verb = a_complete(execute);
    ask(store_, std::move(verb), [this](std::expected<OwnerReply, StoreError> reply) {
      if (!reply || reply->verdict != Verdict::done) std::abort();
      reserve();
    });
  }

  Store& store_;
  std::atomic<std::int64_t> left_;
  std::atomic<std::uint64_t> next_{0};
  RecordId seed_;
  std::latch running_;
};

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// One caller, one key that was answered, `count` duplicates one after the other.
int replays(Store& store, std::uint64_t count) {
  RecordId id;
  random_bytes(id.bytes);
  Reserve verb = a_reserve(store, id);
  const auto first = ask_and_wait(store, verb);
  if (!first || !std::holds_alternative<Execute>(*first)) return 1;
  if (!ask_and_wait(store, a_complete(std::get<Execute>(*first)))) return 1;
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    random_bytes(verb.token.bytes);
    const auto outcome = ask_and_wait(store, verb);
    if (!outcome || !std::holds_alternative<Replay>(*outcome)) return 1;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  fmt::print("replays={} replays_per_second={:.0f}\n", count, static_cast<double>(count) / seconds);
  return 0;
}

std::expected<std::unique_ptr<Store>, std::string> open(const std::string& where) {
  const std::string_view watched = "breaker+";
  OpenOptions options;
  if (const char* const shards = std::getenv("SHARDS")) {
    options.shards = static_cast<std::uint32_t>(std::strtoul(shards, nullptr, 10));
  }
  if (!where.starts_with(watched)) return open_store(where, {}, options);
  auto store = open_store(where.substr(watched.size()), {});
  if (!store) return store;
  return make_circuit_breaker(std::move(*store));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string where = argc > 1 ? argv[1] : "sqlite:bench.db";
  const std::uint64_t pairs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200'000;
  auto store = open(where);
  if (!store) {
    fmt::print(stderr, "{}\n", store.error());
    return 1;
  }
  if (argc > 3 && std::string_view(argv[3]) == "replay") return replays(**store, pairs / 10);
  std::vector<std::size_t> at_once;
  for (int i = 3; i < argc; ++i) at_once.push_back(std::strtoull(argv[i], nullptr, 10));
  if (at_once.empty()) at_once = {1, 16, 64, 256};
  for (const std::size_t concurrency : at_once) {
    const std::uint64_t count = concurrency == 1 ? pairs / 10 : pairs;
    Chains chains(**store, count, concurrency);
    const auto start = Clock::now();
    const double cpu_start = cpu_seconds();
    chains.run(concurrency);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const auto pairs_done = static_cast<double>(count);
    fmt::print("{} concurrency={} pairs={} pairs_per_second={:.0f} cpu_us_per_pair={:.1f}\n", where,
               concurrency, count, pairs_done / seconds,
               (cpu_seconds() - cpu_start) * 1e6 / pairs_done);
  }
  return 0;
}
