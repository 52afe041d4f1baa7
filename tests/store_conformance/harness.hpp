#pragma once

#include "core/record/store_clock.hpp"
#include "store_conformance/describe.hpp"
#include "support/mysql.hpp"
#include "support/postgres.hpp"

#include <idem/open_store.hpp>
#include <idem/store.hpp>
#include <idem/store_wait.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace idem::test {

using namespace std::chrono_literals;

/// The store's clock, moved by hand.
class TestClock {
 public:
  StoreTime now() const { return StoreTime(Millis(millis_->load())); }
  void advance(Millis by) {
    *millis_ += by.count();
    for (const auto& listener : listeners_) listener();
  }
  /// For a store whose clock is elsewhere; called after each advance.
  void on_advance(std::function<void()> listener) { listeners_.push_back(std::move(listener)); }
  /// Wall and uptime move together, as on a well-behaved machine.
  HostClock host() const;

 private:
  std::shared_ptr<std::atomic<std::int64_t>> millis_ =
      std::make_shared<std::atomic<std::int64_t>>(1'800'000'000'000);
  std::vector<std::function<void()>> listeners_;
};

/// A folder of the test's own, in memory where the machine has such; removed at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Two secrets, newest first, and no answer in clear but those that stores make.
EncryptionSettings test_encryption();

/// Of the stores "sharded:".
inline constexpr std::uint32_t shards_of_sharded = 3;

/// The identity settings that all tests start stores with.
IdentitySettings test_settings();

/// Opens "memory:" or "sqlite:PATH" by the test's clock.
std::unique_ptr<Store> open_by_url(const std::string& url, const TestClock& clock,
                                   const IdentitySettings& settings = test_settings());

/// Where the stores of one kind keep what they keep: a folder, or databases of a real server whose
/// clock is the test's.
class StorePlace {
 public:
  /// `kind`: "memory:", "sqlite:", "embedded:", "sharded:" (the same with three shards),
  /// "resharded:" (with another number at each start),
  /// "postgres:", "postgres_pooled:" (behind PgBouncer), "mysql:", "redis:", "redis_cluster:",
  /// "dynamodb:", "hybrid:" of PostgreSQL and Redis, or "hybrid_mysql:" of MySQL and Redis. With
  /// "sealed_" before it the store encrypts what it keeps, with "scoped_" each scope under a key of
  /// its own.
  StorePlace(std::string kind, TestClock& clock);
  ~StorePlace();

  /// The store of this name, as it was left.
  std::unique_ptr<Store> open(const std::string& name, const IdentitySettings& settings);
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  using Opener = std::unique_ptr<Store> (StorePlace::*)(const std::string& name,
                                                        const IdentitySettings& settings);

  Opener opener() const;
  std::unique_ptr<Store> open_by_url_named(const std::string& name,
                                           const IdentitySettings& settings);
  std::unique_ptr<Store> open_postgres_named(const std::string& name,
                                             const IdentitySettings& settings);
  std::unique_ptr<Store> open_mysql_named(const std::string& name,
                                          const IdentitySettings& settings);
  std::unique_ptr<Store> open_redis_named(const std::string& name,
                                          const IdentitySettings& settings);
  std::unique_ptr<Store> open_dynamodb_named(const std::string& name,
                                             const IdentitySettings& settings);
  std::unique_ptr<Store> open_hybrid_named(const std::string& name,
                                           const IdentitySettings& settings);
  /// `set` brings the test's clock to the store: now, and after each advance.
  void follow_clock(std::function<void(std::int64_t ms)> set);

  std::string kind_;
  bool is_sealed_;
  bool is_scoped_ = false;
  TestClock& clock_;
  TempFolder folder_;
  std::map<std::string, std::unique_ptr<TestDatabase>> databases_;
  std::map<std::string, std::unique_ptr<TestMysqlDatabase>> mysql_databases_;
  std::map<std::string, std::string> prefixes_;  ///< At Redis, and tables of DynamoDB.
};

// ---- values ----

inline constexpr Millis lease = 60s;
inline constexpr Millis retention = 24h;
inline constexpr Millis tombstone = 720h;

RecordId key(int number);
Token token(int number);
Fingerprint body(int number);
StoredResponse answer(int status = 201, std::string body = "it ran");

Reserve a_reserve(int key_number, int token_number = 1);
Accept an_accept(int key_number, std::string request = "POST / please");
Complete a_complete(const Execute& run, StoredResponse response = answer());
Release a_release(const Execute& run, ReleaseBasis basis = ReleaseBasis::proven);
MarkUnknown a_mark_unknown(const Execute& run);
/// The same call by an owner that has its token alone.
template <class Verb>
Verb by_token(Verb verb) {
  verb.attempt.fence.reset();
  return verb;
}
Resolve a_resolve(int key_number, Resolve::As as, std::optional<Fence> fence,
                  StoreTime observed_at = {});

/// Each kind of store once, and `further` ones. A new kind is added here, and its opener to
/// StorePlace.
inline auto stores_and(const std::vector<std::string>& further) {
  std::vector<std::string> kinds{
      "memory:", "sqlite:", "embedded:", "postgres:", "mysql:", "redis:", "dynamodb:"};
  kinds.insert(kinds.end(), further.begin(), further.end());
  return testing::ValuesIn(kinds);
}
/// All of them, with the ways in which they are opened.
inline auto every_store() {
  return stores_and({"sharded:", "postgres_pooled:", "redis_cluster:", "hybrid:", "hybrid_mysql:",
                     "sealed_sqlite:", "sealed_hybrid:", "scoped_sqlite:"});
}
/// Those of them that offer transactions.
inline auto stores_with_transactions() {
  return testing::Values("sqlite:", "postgres:", "postgres_pooled:", "mysql:", "sealed_sqlite:",
                         "sealed_postgres:", "sealed_mysql:", "scoped_sqlite:");
}
inline bool serves_several_processes(const std::string& kind) {
  return kind != "memory:" && !kind.ends_with("sqlite:") && !kind.ends_with("embedded:") &&
         !kind.ends_with("sharded:");
}
inline std::string name_of_store(const testing::TestParamInfo<std::string>& named) {
  return named.param.substr(0, named.param.find(':'));
}

/// Every conformance test runs against each store.
class StoreConformance : public testing::TestWithParam<std::string> {
 protected:
  StoreConformance();

  TestClock clock;

  Store& store() { return *store_; }
  /// Closes and opens again, where the store keeps anything.
  void reopen();
  /// One more store of the kind under test.
  std::unique_ptr<Store> open_another(const std::string& name);
  bool is_durable() const { return GetParam() != "memory:"; }

  template <class Verb>
  auto try_ask(Verb verb) {
    return ask_and_wait(*store_, with_generation(std::move(verb)));
  }
  /// Asks where no error is expected.
  template <class Verb>
  typename Verb::Reply ask(Verb verb) {
    auto reply = try_ask(std::move(verb));
    if (reply) return std::move(*reply);
    ADD_FAILURE() << reply.error().detail;
    return {};
  }

  /// The attempt that `verb` wins; fails the test when it wins none.
  Execute run(Reserve verb);
  Execute run(int key_number, int token_number = 1) {
    return run(a_reserve(key_number, token_number));
  }
  /// Claims; fails the test when nothing is due.
  Execute claim(int token_number = 50);

  std::optional<Record> find(int key_number) { return ask(Find{key(key_number)}); }
  std::optional<State> state(int key_number);
  std::string snapshot(int key_number) { return describe(find(key_number)); }

  std::vector<LifecycleStep> sweep(std::size_t limit = 100) { return ask(Sweep{limit}); }
  std::vector<LifecycleStep> reap(std::size_t limit = 100) { return ask(Reap{limit}); }

 private:
  template <class Verb>
  Verb with_generation(Verb verb) {
    if constexpr (std::is_same_v<Verb, Reserve> || std::is_same_v<Verb, PutRecord>) {
      if (verb.generation == 0) verb.generation = store_->identity().generation;
    }
    if constexpr (std::is_same_v<Verb, Accept>) verb.as = with_generation(std::move(verb.as));
    return verb;
  }

  StorePlace place_{GetParam(), clock};
  std::unique_ptr<Store> store_;
};

template <class Outcome>
bool is(const ReserveOutcome& outcome) {
  return std::holds_alternative<Outcome>(outcome);
}

}  // namespace idem::test
