#pragma once

#include "core/evidence/event_source.hpp"
#include "store_conformance/forwarding_store.hpp"
#include "store_conformance/harness.hpp"
#include "workers/reconciler.hpp"

namespace idem::test {

using Provider = workers::Provider;
using ProviderReply = std::expected<Provider::Answer, std::string>;

/// Refuses one kind of verb.
class Refusing final : public ForwardingStore {
 public:
  Refusing(Store& inner, std::size_t kind, StoreError::Code code = StoreError::Code::refused)
      : ForwardingStore(inner), kind_(kind), code_(code) {}
  void call(StoreCall what, StoreCompletion done) override {
    if (what.index() != kind_) return inner().call(std::move(what), std::move(done));
    done(std::unexpected(StoreError{code_, "it is damaged"}));
  }

 private:
  std::size_t kind_;
  StoreError::Code code_;
};

/// Calls `intrude` before the first verb of one kind, as another process would.
class Intruding final : public ForwardingStore {
 public:
  Intruding(Store& inner, std::size_t kind, std::function<void()> intrude)
      : ForwardingStore(inner), kind_(kind), intrude_(std::move(intrude)) {}
  void call(StoreCall what, StoreCompletion done) override {
    if (what.index() == kind_ && intrude_) std::exchange(intrude_, nullptr)();
    inner().call(std::move(what), std::move(done));
  }

 private:
  std::size_t kind_;
  std::function<void()> intrude_;
};

/// Unknown records in a store whose clock is the test's, and a provider that gives the test's
/// replies.
class Reconciling : public testing::TestWithParam<std::string> {
 protected:
  Reconciling() {
    store_ = place_.open("reconciled.db", test_settings());
    start_ = clock_.now();
    provider_ = std::make_shared<Provider>();
    provider_->name = "bank";
    provider_->says = {.found = {*ResponseMatcher::parse("200")},
                       .failed = {*ResponseMatcher::parse("402")},
                       .not_there = {*ResponseMatcher::parse("404")}};
    provider_->grace = 30s;
    provider_->retry_first = 2s;
    provider_->retry_max = 60s;
    provider_->attempts_max = 3;
    provider_->ask = [this](const Record& record, std::string_view key) -> ProviderReply {
      ++asked_;
      asked_by_ = key;
      if (on_ask_) on_ask_(record);
      return reply_;
    };
  }

  template <class Verb>
  typename Verb::Reply ask(Verb verb) {
    auto reply = ask_and_wait(*store_, std::move(verb));
    EXPECT_TRUE(reply) << reply.error().detail;
    return std::move(*reply);
  }

  Reserve reserve(std::uint8_t key, std::uint8_t by = 1) {
    Reserve verb;
    verb.id.bytes.fill(key);
    verb.scope = "acme";
    verb.operation = "pay";
    verb.fingerprints = {{1, {}}};
    verb.token = token(by);
    verb.lease = 60s;
    verb.retention = 24h;
    verb.tombstone = 24h;
    verb.generation = store_->identity().generation;
    return verb;
  }
  Attempt begin(std::uint8_t key, std::uint8_t by = 1) {
    const auto outcome = ask(reserve(key, by));
    EXPECT_TRUE(std::holds_alternative<Execute>(outcome));
    return std::get<Execute>(outcome).attempt;
  }
  Attempt lose(std::uint8_t key, std::optional<Millis> reconcile_in = {}) {
    const Attempt attempt = begin(key);
    ask(MarkUnknown{id(key), attempt, "timeout", reconcile_in, "ref"});
    return attempt;
  }
  static RecordId id(std::uint8_t key) {
    RecordId made;
    made.bytes.fill(key);
    return made;
  }
  /// An operator's evidence about the first record.
  Resolve freed_by_hand(Fence fence) const {
    Resolve verb;
    verb.id = id(1);
    verb.as = Resolve::As::failed_retryable;
    verb.fence = fence;
    verb.observed_at = now();
    return verb;
  }
  Record record(std::uint8_t key) {
    auto found = ask(Find{id(key)});
    EXPECT_TRUE(found);
    return found.value_or(Record{});
  }
  std::vector<EvidenceEntry> story(std::uint8_t key) { return ask(ReadEvidence{id(key)}); }

  workers::Reconciler reconciler_of(Store& store,
                                    Breaker::Rule rule = workers::Reconciler::breaker_rule) {
    return workers::Reconciler(
        store,
        [this](auto level, auto event, auto) {
          if (level != LogLevel::info) events_.emplace_back(event);
        },
        shard_,
        [this](const Record& record) {
          return record.operation == "pay" ? std::shared_ptr<const Provider>(provider_) : nullptr;
        },
        [](const Record& record) { return record.sealed_key; }, 1, rule);
  }
  /// Each with the clock as it is then.
  bool turn() {
    auto reconciler = reconciler_of(*store_);
    return reconciler.turn();
  }

  /// An event about this attempt, with an answer of this status; 0: with none.
  void record_event(std::uint8_t key, std::optional<Fence> fence, Finding finding, int status) {
    ProviderEvent event{.id = "msg " + std::to_string(++events_sent_), .finding = finding};
    if (status != 0) event.response = StoredResponse{status, {}, "reported"};
    Resolve verb;
    verb.id = id(key);
    verb.fence = fence;
    verb.response = event.response;
    verb.denies = finding == Finding::failed;
    verb.source = "event:bank";
    verb.evidence = evidence_of(event, "{}", true);
    verb.observed_at = now();
    ask(verb);
  }

  StoreTime now() const { return clock_.now(); }
  void pass(Millis time) { clock_.advance(time); }

  TestClock clock_;
  StorePlace place_{GetParam(), clock_};
  std::unique_ptr<Store> store_;
  StoreTime start_;
  std::shared_ptr<Provider> provider_;
  ProviderReply reply_ = Provider::Answer{404, ""};
  std::function<void(const Record&)> on_ask_;
  std::vector<std::string> events_;
  metrics::Shard shard_;
  int asked_ = 0;
  std::string asked_by_;
  int events_sent_ = 0;
};

}  // namespace idem::test
