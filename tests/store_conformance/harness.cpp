#include "store_conformance/harness.hpp"

#include "store/dynamodb/dynamodb_store.hpp"
#include "store/log/log_store.hpp"
#include "store/mysql/mysql_store.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store/redis/hybrid_store.hpp"
#include "store/redis/redis_store.hpp"
#include "store/sealed_store.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/stores.hpp"
#include "support/dynamodb.hpp"
#include "support/redis.hpp"

#include <idem/fingerprint.hpp>

#include <cstdlib>

namespace idem::test {

HostClock TestClock::host() const {
  const auto millis = millis_;
  return {[millis] { return StoreTime(Millis(millis->load())); },
          [millis] { return Millis(millis->load()); }, "test-boot"};
}

TempFolder::TempFolder() {
  const bool shm = std::filesystem::is_directory("/dev/shm");
  std::string pattern = (shm ? "/dev/shm" : testing::TempDir()) + "/idem-store-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

IdentitySettings test_settings() { return {"operation", "header:X-Tenant-Id"}; }

namespace {

std::unique_ptr<Store> expect_open(std::expected<std::unique_ptr<Store>, StoreError> store) {
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error().detail;
  std::abort();
}

}  // namespace

std::unique_ptr<Store> open_by_url(const std::string& url, const TestClock& clock,
                                   const IdentitySettings& settings) {
  const bool is_sharded = url.starts_with("sharded:");
  const bool is_resharded = url.starts_with("resharded:");
  if (is_sharded || is_resharded || url.starts_with("embedded:")) {
    // Its files are so small that they begin, end and are copied together all the time.
    const LogSizes small{
        .segment_bytes = 64UL << 10U, .cache_bytes = 1UL << 20U, .buffer_bytes = 128UL << 10U};
    static std::atomic<std::uint32_t> starts{0};
    const std::uint32_t shards = is_sharded     ? shards_of_sharded
                                 : is_resharded ? 1 + starts.fetch_add(3) % 5
                                                : 0;
    return expect_open(open_log(url.substr(url.find(':') + 1), settings,
                                {.host = clock.host(), .sizes = small, .shards = shards}));
  }
  auto store = url == "memory:" ? open_memory(settings, clock.host().wall)
                                : open_sqlite(url.substr(std::string("sqlite:").size()), settings,
                                              {.host = clock.host()});
  return expect_open(std::move(store));
}

EncryptionSettings test_encryption() {
  EncryptionSettings settings;
  settings.secrets = {Secret{7, 7, 7}, Secret{6, 6, 6}};
  settings.accept_clear = false;
  return settings;
}

namespace {

constexpr std::string_view sealed = "sealed_";
constexpr std::string_view scoped = "scoped_";

}  // namespace

StorePlace::StorePlace(std::string kind, TestClock& clock)
    : kind_(std::move(kind)), is_sealed_(kind_.starts_with(sealed)), clock_(clock) {
  is_scoped_ = kind_.starts_with(scoped);
  if (is_sealed_) kind_.erase(0, sealed.size());
  if (is_scoped_) kind_.erase(0, scoped.size());
}
StorePlace::~StorePlace() = default;

std::unique_ptr<Store> StorePlace::open(const std::string& name, const IdentitySettings& settings) {
  auto store = (this->*opener())(name, settings);
  if (!is_sealed_ && !is_scoped_) return store;
  EncryptionSettings encryption = test_encryption();
  encryption.key_per_scope = is_scoped_;
  return make_sealed(std::move(store), encryption);
}

StorePlace::Opener StorePlace::opener() const {
  static const std::pair<std::string_view, Opener> openers[] = {
      {"postgres", &StorePlace::open_postgres_named},
      {"mysql", &StorePlace::open_mysql_named},
      {"redis", &StorePlace::open_redis_named},
      {"dynamodb", &StorePlace::open_dynamodb_named},
      {"hybrid", &StorePlace::open_hybrid_named},
  };
  for (const auto& [begins, opener] : openers) {
    if (kind_.starts_with(begins)) return opener;
  }
  return &StorePlace::open_by_url_named;
}

std::unique_ptr<Store> StorePlace::open_by_url_named(const std::string& name,
                                                     const IdentitySettings& settings) {
  return open_by_url(kind_ == "memory:" ? kind_ : kind_ + folder_.file(name), clock_, settings);
}

void StorePlace::follow_clock(std::function<void(std::int64_t ms)> set) {
  const auto follow = [set = std::move(set), clock = &clock_] {
    set(clock->now().time_since_epoch().count());
  };
  follow();
  clock_.on_advance(follow);
}

std::unique_ptr<Store> StorePlace::open_postgres_named(const std::string& name,
                                                       const IdentitySettings& settings) {
  auto& database = databases_[name];
  const bool is_new = !database;
  if (is_new) database = std::make_unique<TestDatabase>(TestDatabase::With::schema);
  const bool is_pooled = kind_ == "postgres_pooled:";
  const std::string uri = is_pooled ? database->pooled_uri() : database->uri();
  auto store = expect_open(open_postgres(uri, settings, {}));
  if (is_new) {
    const auto session = std::make_shared<Psql>(database->uri());
    session->run(
        "CREATE TABLE test_clock (ms bigint);"
        "INSERT INTO test_clock VALUES (0);"
        "CREATE OR REPLACE FUNCTION idem.now() RETURNS timestamptz LANGUAGE sql VOLATILE"
        " RETURN (SELECT to_timestamp(0) + interval '1 millisecond' * ms FROM public.test_clock)");
    follow_clock([session](std::int64_t ms) {
      session->run("UPDATE test_clock SET ms = " + std::to_string(ms));
    });
  }
  return store;
}

std::unique_ptr<Store> StorePlace::open_mysql_named(const std::string& name,
                                                    const IdentitySettings& settings) {
  auto& database = mysql_databases_[name];
  const bool is_new = !database;
  if (is_new) database = std::make_unique<TestMysqlDatabase>();
  auto store = expect_open(open_mysql(database->url(), settings, {}));
  if (is_new) {
    const auto session = std::make_shared<MysqlSession>(database->url());
    session->run(
        "CREATE TABLE test_clock (ms BIGINT) ENGINE=InnoDB;"
        "INSERT INTO test_clock VALUES (0);"
        "CREATE OR REPLACE FUNCTION idem_now() RETURNS BIGINT NOT DETERMINISTIC READS SQL DATA"
        " RETURN (SELECT ms FROM test_clock)");
    follow_clock([session](std::int64_t ms) {
      session->run("UPDATE test_clock SET ms = " + std::to_string(ms));
    });
  }
  return store;
}

std::unique_ptr<Store> StorePlace::open_redis_named(const std::string& name,
                                                    const IdentitySettings& settings) {
  auto& prefix = prefixes_[name];
  if (prefix.empty()) prefix = new_redis_prefix();
  const std::string where = kind_ == "redis:"
                                ? "redis://" + shared_redis_address() + "/"
                                : "redis+cluster://" + shared_redis_cluster_addresses() + "/";
  return expect_open(
      open_redis(where + "?prefix=" + prefix, settings, {.clock = clock_.host().wall}));
}

std::unique_ptr<Store> StorePlace::open_dynamodb_named(const std::string& name,
                                                       const IdentitySettings& settings) {
  auto& table = prefixes_[name];
  if (table.empty()) table = new_dynamodb_table();
  return expect_open(open_dynamodb(
      dynamodb_url(shared_dynamodb_endpoint(), table), settings,
      {.clock = clock_.host().wall, .waits = {.change = std::chrono::milliseconds(20)}}));
}

std::unique_ptr<Store> StorePlace::open_hybrid_named(const std::string& name,
                                                     const IdentitySettings& settings) {
  const std::string fast = "redis://" + shared_redis_address() + "/?prefix=" + new_redis_prefix();
  auto truth = kind_ == "hybrid_mysql:" ? open_mysql_named(name, settings)
                                        : open_postgres_named(name, settings);
  return expect_open(open_hybrid(
      std::move(truth), fast,
      {.clock = clock_.host().wall, .reply_max = std::chrono::seconds(10), .warn = {}}));
}

RecordId key(int number) {
  RecordId id;
  id.bytes.fill(static_cast<std::uint8_t>(number));
  return id;
}

Token token(int number) {
  Token made;
  made.bytes.fill(static_cast<std::uint8_t>(number));
  made.bytes.back() = 0xee;
  return made;
}

Fingerprint body(int number) {
  Fingerprint made{1, {}};
  made.digest.fill(static_cast<std::uint8_t>(number));
  return made;
}

StoredResponse answer(int status, std::string body) {
  return {status, {{"Content-Type", "text/plain"}, {"Location", "/payments/1"}}, std::move(body)};
}

Reserve a_reserve(int key_number, int token_number) {
  Reserve verb;
  verb.id = key(key_number);
  verb.scope = "tenant-1";
  verb.operation = "pay";
  verb.fingerprints = {body(1)};
  verb.token = token(token_number);
  verb.owner = "node-1";
  verb.lease = lease;
  verb.retention = retention;
  verb.tombstone = tombstone;
  return verb;
}

Accept an_accept(int key_number, std::string request) {
  return {a_reserve(key_number), std::move(request)};
}

Complete a_complete(const Execute& run, StoredResponse response) {
  return {run.id, run.attempt, std::move(response), "ref-1"};
}

Release a_release(const Execute& run, ReleaseBasis basis) {
  return {run.id, run.attempt, basis, "connect_refused", 5s};
}

MarkUnknown a_mark_unknown(const Execute& run) {
  return {run.id, run.attempt, "upstream_timeout", 30s, "ref-2"};
}

Resolve a_resolve(int key_number, Resolve::As as, std::optional<Fence> fence,
                  StoreTime observed_at) {
  Resolve verb;
  verb.id = key(key_number);
  verb.as = as;
  verb.fence = fence;
  if (as == Resolve::As::completed) verb.response = answer(201, "found at the provider");
  verb.source = "provider";
  verb.evidence = "payment 17 exists";
  verb.reason = "looked up";
  verb.observed_at = observed_at;
  return verb;
}

StoreConformance::StoreConformance() { reopen(); }

void StoreConformance::reopen() {
  if (store_ && !is_durable()) return;
  store_.reset();
  store_ = open_another("idem.db");
}

std::unique_ptr<Store> StoreConformance::open_another(const std::string& name) {
  return place_.open(name, test_settings());
}

Execute StoreConformance::run(Reserve verb) {
  const ReserveOutcome outcome = ask(std::move(verb));
  if (const auto* execute = std::get_if<Execute>(&outcome)) return *execute;
  ADD_FAILURE() << "expected to run, got " << describe(outcome);
  return {};
}

Execute StoreConformance::claim(int token_number) {
  const auto claimed = ask(Claim{token(token_number), "dispatcher", lease, true});
  if (claimed) return {claimed->id, claimed->attempt, claimed->recovery_point};
  ADD_FAILURE() << "nothing was due";
  return {};
}

std::optional<State> StoreConformance::state(int key_number) {
  const auto record = find(key_number);
  if (!record) return std::nullopt;
  return record->state;
}

// ---- where the stores are listed ----

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance, every_store(), name_of_store);

}  // namespace idem::test
