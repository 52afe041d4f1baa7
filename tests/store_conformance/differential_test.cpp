#include "core/record/sealed_parts.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store_conformance/harness.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <random>

/// Each store against the reference: the same random verbs, every reply and every record equal. But
/// for fences: any that grow will do, so the twin's are known by their rank.
namespace idem::test {
namespace {

constexpr int keys = 6;

/// The twin's fence for each of the reference's. Where the two have answered alike so
/// far, an attempt begins in both at one time.
class Fences {
 public:
  void learn(const StoreResult& reference, const StoreResult& twin) {
    const auto of_reference = granted(reference);
    const auto of_twin = granted(twin);
    if (!of_reference || !of_twin || to_twin_.contains(*of_reference)) return;
    EXPECT_GT(*of_twin, newest_) << "a fence that does not grow";
    newest_ = *of_twin;
    to_twin_[*of_reference] = *of_twin;
    to_reference_[*of_twin] = *of_reference;
  }

  StoreCall as_the_twin_has_them(StoreCall call) const {
    std::visit(
        [&](auto& verb) {
          if constexpr (requires { verb.attempt.fence; })
            verb.attempt.fence = twin(verb.attempt.fence);
          if constexpr (requires { verb.fence; }) verb.fence = twin(verb.fence);
        },
        call);
    return call;
  }

  StoreResult as_the_reference_has_them(StoreResult result) const {
    if (!result) return result;
    if (auto* outcome = std::get_if<ReserveOutcome>(&*result)) {
      if (auto* execute = std::get_if<Execute>(outcome)) translate(execute->attempt.fence);
      if (auto* running = std::get_if<InProgress>(outcome)) translate_if_any(running->fence);
    }
    if (auto* claimed = std::get_if<std::optional<Claimed>>(&*result); claimed && *claimed) {
      translate((*claimed)->attempt.fence);
    }
    if (auto* record = std::get_if<std::optional<Record>>(&*result); record && *record) {
      translate_attempt(**record);
    }
    if (auto* records = std::get_if<std::vector<Record>>(&*result)) {
      for (Record& record : *records) translate_attempt(record);
    }
    if (auto* entries = std::get_if<std::vector<EvidenceEntry>>(&*result)) {
      for (EvidenceEntry& entry : *entries) translate_if_any(entry.fence);
    }
    return result;
  }

 private:
  static std::optional<Fence> granted(const StoreResult& result) {
    if (!result) return std::nullopt;
    if (const auto* outcome = std::get_if<ReserveOutcome>(&*result)) {
      if (const auto* execute = std::get_if<Execute>(outcome)) return execute->attempt.fence;
    }
    const auto* claimed = std::get_if<std::optional<Claimed>>(&*result);
    if (claimed != nullptr && *claimed) return (*claimed)->attempt.fence;
    return std::nullopt;
  }

  /// One that was never granted stays one: far above all that ever will be.
  std::optional<Fence> twin(std::optional<Fence> fence) const {
    if (!fence) return std::nullopt;
    const auto found = to_twin_.find(*fence);
    return found != to_twin_.end() ? found->second : *fence + unknown_from;
  }
  void translate_if_any(std::optional<Fence>& fence) const {
    if (fence) translate(*fence);
  }
  void translate_attempt(Record& record) const {
    if (record.attempt) translate(record.attempt->fence);
  }
  void translate(Fence& fence) const {
    if (fence >= unknown_from) {
      fence -= unknown_from;
    } else if (const auto found = to_reference_.find(fence); found != to_reference_.end()) {
      fence = found->second;
    }
  }

  static constexpr Fence unknown_from = Fence{1} << 60;
  std::map<Fence, Fence> to_twin_;
  std::map<Fence, Fence> to_reference_;
  Fence newest_ = 0;
};

class Twins {
 public:
  Twins(const std::string& kind, std::uint64_t seed)
      : reaps_early_(kind.starts_with("redis") || kind.starts_with("dynamodb")),
        forgets_its_attempts_(kind.starts_with("hybrid")),
        is_sealed_(kind.starts_with("sealed_")),
        random_(seed),
        place_(kind, clock_) {
    open();
  }

  void step() {
    if (one_in(400)) open();
    if (one_in(4)) advance();
    const StoreCall verb = next_verb();
    const auto* reserve = std::get_if<Reserve>(&verb);
    if (const auto* accept = std::get_if<Accept>(&verb)) reserve = &accept->as;
    if (reaps_early_ && reserve != nullptr && !reserve->also.empty()) {
      // There a reserve drops the ended records of other names, so that no asker resumes them.
      for (int steps = 0; steps < 2; ++steps) both(Reap{1'000});
    }
    const std::string described = both(verb);
    if (testing::Test::HasFailure()) return;
    both(Find{any_key()});
    if (one_in(10)) {
      for (int number = 1; number <= keys; ++number) both(Find{key(number)});
    }
    if (one_in(50)) {
      both(List{});
      both(List{.state = any_of({State::pending, State::in_progress, State::completed,
                                 State::failed_retryable, State::unknown, State::expired}),
                .limit = 2});
      both(ReadEvidence{any_key()});
    }
  }

 private:
  void open() {
    if (!memory_) memory_ = open_by_url("memory:", clock_);
    twin_.reset();
    // This needs time. Fences that come from the clock grow for each key anyhow; only these
    // comparisons need them to grow over all keys, too.
    clock_.advance(1ms);
    twin_ = place_.open("twin.db", test_settings());
    ++lives_;
  }

  static StoreResult wait_for(Store& store, StoreCall call) {
    auto promise = std::make_shared<std::promise<StoreResult>>();
    auto reply = promise->get_future();
    store.call(std::move(call),
               [promise](StoreResult result) { promise->set_value(std::move(result)); });
    return reply.get();
  }

  /// Each line of a journal but the audit is longer there.
  void take_seals_back(StoreResult& from_twin) const {
    auto* const listed =
        from_twin ? std::get_if<std::vector<JournalSummary>>(&*from_twin) : nullptr;
    if (!is_sealed_ || listed == nullptr) return;
    for (JournalSummary& one : *listed) {
      if (one.name != "audit") one.bytes -= one.last * sealed_line_extra_bytes;
    }
  }

  std::string both(const StoreCall& call) {
    const StoreResult from_memory = wait_for(*memory_, call);
    const std::string expected = describe(from_memory);
    StoreResult from_twin =
        wait_for(*twin_, in_twins_generation(fences_.as_the_twin_has_them(call)));
    take_generation_back(from_twin);
    take_seals_back(from_twin);
    fences_.learn(from_memory, from_twin);
    EXPECT_EQ(describe(fences_.as_the_reference_has_them(from_twin)), expected)
        << "verb " << call.index();
    learn(from_memory);
    return expected;
  }

  /// The reference begins with generation 1, and PostgreSQL with a random one.
  std::uint64_t generations_apart() const { return twin_->identity().generation - 1; }
  StoreCall in_twins_generation(StoreCall call) const {
    if (auto* reserve = std::get_if<Reserve>(&call)) reserve->generation += generations_apart();
    if (auto* accept = std::get_if<Accept>(&call)) accept->as.generation += generations_apart();
    return call;
  }
  void take_generation_back(StoreResult& result) const {
    if (!result) {
      std::string& detail = result.error().detail;
      const std::string first = std::to_string(twin_->identity().generation);
      if (detail.ends_with(first)) detail.replace(detail.size() - first.size(), first.size(), "1");
      return;
    }
    if (auto* record = std::get_if<std::optional<Record>>(&*result); record && *record) {
      (*record)->generation -= generations_apart();
    }
    if (auto* records = std::get_if<std::vector<Record>>(&*result)) {
      for (Record& record : *records) record.generation -= generations_apart();
    }
  }

  void learn(const StoreResult& result) {
    if (!result) return;
    if (const auto* outcome = std::get_if<ReserveOutcome>(&*result)) {
      if (const auto* execute = std::get_if<Execute>(outcome))
        remember(execute->id, execute->attempt);
    }
    if (const auto* claimed = std::get_if<std::optional<Claimed>>(&*result); claimed && *claimed) {
      remember((*claimed)->id, (*claimed)->attempt);
    }
  }

  void remember(const RecordId& id, const Attempt& attempt) {
    auto& known = attempts_[id.bytes[0]];
    known.push_back(attempt);
    if (known.size() > 4) known.erase(known.begin());
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t chance) { return below(chance) == 0; }
  template <class T>
  T any_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  RecordId any_key() { return key(1 + static_cast<int>(below(keys))); }

  void advance() {
    clock_.advance(
        any_of<Millis>({1ms, 1s, 5s, 30s, 60s, 61s, 10min, 12h, 24h, 25h, 300h, 720h, 800h}));
  }

  AttemptRef any_attempt(const RecordId& id) {
    const auto& known = attempts_[id.bytes[0]];
    AttemptRef attempt =
        known.empty() ? Attempt{1, token(1)} : known[known.size() - 1 - below(known.size())];
    if (one_in(8)) attempt.fence.reset();
    if (one_in(20)) attempt.token = token(77);
    if (one_in(20)) attempt.fence = attempt.fence.value_or(0) + 1;
    return attempt;
  }

  Reserve any_reserve() {
    Reserve verb = a_reserve(1, 1 + static_cast<int>(below(5)));
    // A cache regards the lease of an attempt that is written to it as one that begins; only an
    // attempt of this process may be written again, since no other has the token.
    if (forgets_its_attempts_) verb.token.bytes[0] = static_cast<std::uint8_t>(lives_);
    verb.id = any_key();
    if (one_in(5)) verb.also = {{any_key()}, {any_key(), {body(2)}}};
    if (one_in(10)) verb.fingerprints = {body(2)};
    if (one_in(5)) verb.fingerprints = {body(2), body(1)};
    verb.lease_policy = any_of({LeasePolicy::unknown, LeasePolicy::resume, LeasePolicy::rerun});
    verb.dispatched = one_in(2);
    verb.tombstone = any_of<Millis>({0s, 1h, tombstone});
    verb.generation = one_in(50) ? 2 : 1;
    // Not a rate: a start may forget it.
    if (one_in(2)) {
      // A quota counts bytes as they are stored, and a sealed answer has more of them: there, one
      // that is nearly spent would refuse what the reference accepts.
      const std::uint64_t bytes =
          is_sealed_ ? std::uint64_t{1} << 40 : keys * limits::record_charge / 2;
      verb.quota = any_of({Quota{}, Quota{.active_keys = keys / 2}, Quota{.stored_bytes = bytes}});
    }
    if (one_in(3)) verb.provider = any_of({"bank", "other"});
    if (one_in(5)) verb.sealed_key = std::string("sealed\0\xff", 8);
    return verb;
  }

  StoredResponse any_response() {
    StoredResponse response = answer(any_of({200, 201, 404, 500, 503}));
    response.body.assign(below(one_in(20) ? 20'000 : 50), 'x');
    response.body_stored = !one_in(10);
    return response;
  }

  StoreCall next_verb() {
    const RecordId id = any_key();
    switch (below(27)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return any_reserve();
      case 5:
      case 6:
        return Accept{any_reserve(), std::string(below(100), 'r')};
      case 7:
      case 8:
        return Claim{token(20 + static_cast<int>(below(9))), "dispatcher", lease, one_in(2)};
      case 9:
        return Dispatched{id, any_attempt(id)};
      case 10:
        return Renew{id, any_attempt(id), any_of<Millis>({1s, lease, 120s, 0s})};
      case 11:
        return Advance{id, any_attempt(id), fmt::format("phase-{}", below(9))};
      case 12:
      case 13:
      case 14:
        return Complete{id, any_attempt(id), any_response(), one_in(2) ? "ref" : ""};
      case 15:
      case 16:
        return Release{id, any_attempt(id), any_of({ReleaseBasis::proven, ReleaseBasis::declared}),
                       "code", any_of<Millis>({0s, 5s, 48h})};
      case 17:
        return MarkUnknown{id, any_attempt(id), "timeout",
                           one_in(2) ? std::optional<Millis>(30s) : std::nullopt, "ref-2"};
      case 18:
        return any_resolve(id);
      case 19:
        return CacheBust{id, any_attempt(id).fence, "operator said so"};
      case 20:
        return Sweep{1'000};
      case 21:
        return Count{};
      case 22:
        return Reschedule{.id = id,
                          .fence = any_attempt(id).fence,
                          .attempts = static_cast<std::uint32_t>(below(3)),
                          .reconcile_in = one_in(3) ? std::nullopt : std::optional<Millis>(10s),
                          .source = one_in(2) ? "poll" : "",
                          .evidence = "said",
                          .reason = "later",
                          .observed_at = clock_.now()};
      case 23:
        return any_of_a_journal();
      case 24:
      case 25:
        // A cache may replay the former form of the same answer.
        if (is_sealed_ || forgets_its_attempts_) return Find{id};
        return any_reseal(id);
      default:
        return Reap{1'000};
    }
  }

  StoreCall any_of_a_journal() {
    const std::string journal = any_of({"audit", "jobs/1", "jobs/2"});
    switch (below(8)) {
      case 0:
        return ReadLines{journal, below(4), below(4)};
      case 1:
        return ListJournals{any_of({"", "jobs/", "jobs/1"}), any_of({"", "audit", "jobs/1"}),
                            below(3)};
      case 2:
        return DropJournal{journal, below(5)};
      default:
        return AppendLine{journal, below(5), std::string(below(20), 'l')};
    }
  }

  Reseal any_reseal(const RecordId& id) {
    Reseal verb;
    verb.id = id;
    verb.fence = any_attempt(id).fence;
    verb.response = any_response();
    const StoreResult read = wait_for(*memory_, Find{id});
    const auto& record = std::get<std::optional<Record>>(*read);
    if (record && record->stored_request && one_in(2)) {
      verb.seen = digest_of_stored(*record->stored_request);
      verb.response.reset();
      verb.request = std::string(below(100), 's');
    } else if (record && record->response) {
      verb.seen = digest_of_stored(*record->response);
      verb.fence = record->fence();
      if (!one_in(4)) verb.response->status = record->response->status;
      if (!one_in(4)) verb.response->body_stored = record->response->body_stored;
    }
    if (one_in(8)) verb.seen[0] ^= 1;
    return verb;
  }

  Resolve any_resolve(const RecordId& id) {
    Resolve verb = a_resolve(1, any_of({Resolve::As::completed, Resolve::As::failed_retryable}),
                             any_attempt(id).fence, clock_.now());
    verb.id = id;
    if (one_in(10)) verb.observed_at += 1ms;
    if (one_in(5)) verb.response.reset();
    if (one_in(8)) verb.fence.reset();
    verb.denies = one_in(3);
    return verb;
  }

  bool reaps_early_;
  bool forgets_its_attempts_;
  bool is_sealed_;  ///< What is stored there is not what the reference stores.
  int lives_ = 0;
  std::mt19937_64 random_;
  TestClock clock_;
  StorePlace place_;
  Fences fences_;
  std::unique_ptr<Store> memory_;
  std::unique_ptr<Store> twin_;
  std::map<int, std::vector<Attempt>> attempts_;
};

std::uint64_t chosen_seed() {
  if (const char* text = std::getenv("IDEM_SEED")) return std::strtoull(text, nullptr, 10);
  return std::random_device()();
}

int chosen_steps(const std::string& kind) {
  const char* text = std::getenv("IDEM_DIFFERENTIAL_STEPS");
  if (text != nullptr) return std::atoi(text);
  // The server that stands in for DynamoDB answers some fifty steps a second.
  return kind == "dynamodb:" ? 1'000 : 4'000;
}

class Differential : public testing::TestWithParam<const char*> {};

TEST_P(Differential, T58_a_store_answers_as_the_reference_does) {
  const std::string kind = GetParam();
  const int steps = chosen_steps(kind);
  ASSERT_GT(steps, 0);
  const std::uint64_t seed = chosen_seed();
  fmt::print("IDEM_SEED={}\n", seed);
  Twins twins(kind, seed);
  for (int i = 0; i < steps; ++i) {
    twins.step();
    ASSERT_FALSE(HasFailure()) << "step " << i << ", IDEM_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, Differential,
                         testing::Values("sqlite:", "embedded:", "sharded:", "resharded:",
                                         "postgres:", "mysql:", "redis:", "redis_cluster:",
                                         "dynamodb:", "hybrid:", "hybrid_mysql:", "sealed_sqlite:"),
                         [](const auto& named) {
                           const std::string kind = named.param;
                           return kind.substr(0, kind.find(':'));
                         });

}  // namespace
}  // namespace idem::test
