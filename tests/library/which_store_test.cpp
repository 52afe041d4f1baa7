#include <idem/fingerprint.hpp>
#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/bytes/ascii.hpp"
#include "support/back_off.hpp"
#include "support/dynamodb.hpp"
#include "support/mysql.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"
#include "support/temp_dir.hpp"

/// The store that a start finds: reported, pinned by its id, and made only where that is allowed.
/// Another one, or a new one, would run every key again.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

IdentitySettings test_settings() { return {"operation", "header:X-Tenant-Id"}; }

/// Of one key, by the token of this number.
Reserve a_reserve(Store& store, std::uint8_t token_number = 1) {
  const Identity& identity = store.identity();
  const RequestDigest digest({.method = "POST",
                              .target = "/v1",
                              .content_type = "text/plain",
                              .chosen_headers = {},
                              .body = "please"});
  Reserve verb;
  verb.id = record_id(identity.secret, "t", "pay", "k");
  verb.scope = "t";
  verb.operation = "pay";
  verb.fingerprints = digest.under(identity.secret);
  verb.token.bytes.fill(token_number);
  verb.owner = "test";
  verb.lease = 60s;
  verb.retention = 24h;
  verb.tombstone = 720h;
  verb.generation = identity.generation;
  return verb;
}

template <class Outcome>
bool is(const std::expected<ReserveOutcome, StoreError>& outcome) {
  return outcome && std::holds_alternative<Outcome>(*outcome);
}

/// A place for one store of a kind, which can lose it.
class Place {
 public:
  explicit Place(const std::string& kind) : kind_(kind) {
    if (kind == "postgres" || kind == "hybrid") database_ = std::make_unique<TestDatabase>();
    if (kind == "mysql") mysql_ = std::make_unique<TestMysqlDatabase>();
    if (kind == "redis" || kind == "hybrid") redis_ = std::make_unique<RedisServer>();
    if (kind == "dynamodb") table_ = new_dynamodb_table();
  }
  std::string url() const {
    if (kind_ == "sqlite") return "sqlite:" + file("idem.db");
    if (kind_ == "postgres") return database_->uri();
    if (kind_ == "mysql") return mysql_->url();
    if (kind_ == "redis") return redis_->url();
    if (kind_ == "dynamodb") return dynamodb_url(shared_dynamodb_endpoint(), table_);
    return "hybrid:?truth=" + database_->uri() + "&fast=" + redis_->url();
  }
  /// mv, DROP, FLUSHALL, DeleteTable.
  void lose() const {
    if (kind_ == "sqlite") fs::rename(file("idem.db"), file("elsewhere.db"));
    if (database_) Psql(database_->uri()).run("DROP SCHEMA idem CASCADE");
    if (mysql_) {
      const auto& name = mysql_->name();
      MysqlSession(mysql_->url()).run("DROP DATABASE " + name + "; CREATE DATABASE " + name);
    }
    if (redis_) redis_->ask("flushall");
    if (kind_ == "dynamodb") lose_table();
  }
  bool is_empty() const {
    if (kind_ == "sqlite") return !fs::exists(file("idem.db"));
    if (kind_ == "redis") return redis_->ask("dbsize") == "0";
    if (kind_ == "dynamodb") return !has_table();
    if (kind_ == "mysql") {
      const std::string tables = "information_schema.tables WHERE table_schema = DATABASE()";
      return MysqlSession(mysql_->url()).run("SELECT count(*) FROM " + tables) == "0";
    }
    return Psql(database_->uri()).run("SELECT to_regnamespace('idem') IS NULL") == "t";
  }

 private:
  std::string kind_;
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  bool has_table() const { return has_dynamodb_table(shared_dynamodb_endpoint(), table_); }
  /// The service answers before the table is gone.
  void lose_table() const {
    ask_dynamodb(shared_dynamodb_endpoint(), "DeleteTable", R"({"TableName":")" + table_ + "\"}");
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (has_table() && std::chrono::steady_clock::now() < until) {
      back_off();
    }
  }

  TempDir folder_;
  std::unique_ptr<TestDatabase> database_;
  std::unique_ptr<TestMysqlDatabase> mysql_;
  std::unique_ptr<RedisServer> redis_;
  std::string table_;  ///< Of DynamoDB.
};

class WhichStoreIsOpened : public testing::TestWithParam<std::string> {
 protected:
  struct Start {
    std::expected<std::unique_ptr<Store>, std::string> store;
    std::vector<OpenedStore> opened{};
  };
  Start start(const std::string& url, WhichStore which = {},
              const IdentitySettings& settings = test_settings()) {
    Start one;
    const auto note = [&](const OpenedStore& opened) { one.opened.push_back(opened); };
    one.store = open_store(url, settings, {.which = std::move(which), .opened = note});
    return one;
  }
  std::string refusal(const std::string& url, WhichStore which) {
    const Start one = start(url, std::move(which));
    EXPECT_TRUE(one.opened.empty());
    if (!one.store) return one.store.error();
    ADD_FAILURE() << "was opened";
    return {};
  }
  static void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no: " << part;
  }
  /// Makes the store, with a record in it; its id.
  std::string make(const std::string& url) {
    const Start first = start(url);
    if (!first.store) {
      ADD_FAILURE() << first.store.error();
      return {};
    }
    EXPECT_TRUE(ask_and_wait(**first.store, a_reserve(**first.store)));
    return first.opened.at(0).id;
  }

  Place place_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Stores, WhichStoreIsOpened,
                         testing::Values("sqlite", "postgres", "mysql", "redis", "dynamodb",
                                         "hybrid"),
                         [](const auto& kind) { return kind.param; });

TEST_P(WhichStoreIsOpened, S02_a_start_reports_the_id_the_place_and_whether_it_is_new) {
  const std::string url = place_.url();
  Start first = start(url);
  ASSERT_EQ(first.opened.size(), 1U);
  EXPECT_TRUE(first.opened[0].is_new);
  EXPECT_EQ(first.opened[0].id.size(), 36U);
  EXPECT_FALSE(first.opened[0].place.empty());
  if (GetParam() == "sqlite") {
    EXPECT_EQ("sqlite:" + first.opened[0].place, url);
  }
  const std::string id = first.opened[0].id;
  if (GetParam() == "sqlite") first.store->reset();  // One process owns the file.
  const Start second = start(url);
  ASSERT_EQ(second.opened.size(), 1U);
  EXPECT_FALSE(second.opened[0].is_new);
  EXPECT_EQ(second.opened[0].id, id);
}

TEST_P(WhichStoreIsOpened, S02_a_pinned_store_is_opened_and_another_or_none_is_refused) {
  const std::string id = make(place_.url());
  EXPECT_TRUE(start(place_.url(), {.id = id}).store);
  EXPECT_TRUE(start(place_.url(), {.id = upper_case(id)}).store)
      << "hexadecimal digits are no words";

  const std::string other = "00000000-0000-4000-8000-000000000001";
  const std::string not_it = refusal(place_.url(), {.id = other});
  expect_has(not_it, id);
  expect_has(not_it, other);

  place_.lose();
  const std::string gone = refusal(place_.url(), {.id = id});
  expect_has(gone, id);
  expect_has(gone, "no store here");
  EXPECT_TRUE(place_.is_empty()) << "nothing was made";
  EXPECT_NE(make(place_.url()), id) << "a new store has an id of its own";
  expect_has(refusal(place_.url(), {.id = id}), id);
}

TEST_P(WhichStoreIsOpened, S02_none_is_made_where_that_is_not_allowed) {
  const WhichStore existing{.make = false};
  expect_has(refusal(place_.url(), existing), "no store here");
  EXPECT_TRUE(place_.is_empty());
  make(place_.url());
  EXPECT_TRUE(start(place_.url(), existing).store);
}

// A worker without a scope began a generation of an empty store, and the gateway's reserves were
// refused from then on.
TEST_P(WhichStoreIsOpened, S02_a_start_that_makes_no_store_chooses_no_settings) {
  const WhichStore existing{.make = false};
  const std::string url = place_.url();
  Start empty = start(url);
  ASSERT_TRUE(empty.store) << empty.store.error();
  const auto generation = (*empty.store)->identity().generation;
  empty.store->reset();
  for (const bool has_records : {false, true}) {
    if (has_records) make(url);
    Start without = start(url, existing, {});
    ASSERT_TRUE(without.store) << without.store.error();
    EXPECT_EQ((*without.store)->identity().generation, generation);
    without.store->reset();
    EXPECT_FALSE(start(url, existing, {.scope_source = "mtls"}).store) << has_records;
    EXPECT_FALSE(start(url, existing,
                       {.scope_source = {}, .secrets = {secret_from("another one's material")}})
                     .store)
        << has_records;
    const Start same = start(url);
    ASSERT_TRUE(same.store) << same.store.error();
    EXPECT_EQ((*same.store)->identity().generation, generation);
  }
}

TEST_P(WhichStoreIsOpened, S02_a_migration_uses_the_settings_that_are_recorded) {
  const std::string url = place_.url();
  if (GetParam() == "redis" || GetParam() == "dynamodb") {
    EXPECT_EQ(migrate_store(url).value().place, "") << "it has no schema";
    return;
  }
  const auto made = migrate_store(url);
  ASSERT_TRUE(made) << made.error();
  EXPECT_TRUE(made->is_new);
  const std::string id = make(url);
  EXPECT_EQ(id, made->id);
  const auto again = migrate_store(url);
  ASSERT_TRUE(again) << again.error();
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(again->id, id);
  const Start after = start(url);
  ASSERT_TRUE(after.store) << after.store.error();
  EXPECT_TRUE(is<InProgress>(ask_and_wait(**after.store, a_reserve(**after.store, 2))));
}

// A relative path in another folder found another, empty store, and nobody said so.
TEST(WhichStoreLogged, S02_a_new_store_is_reported_with_its_absolute_place_to_who_does_not_ask) {
  const TempDir folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  std::string lines;
  const OpenOptions options{.log = [&](LogLevel level, std::string_view event, auto fields) {
    EXPECT_EQ(level, LogLevel::warning);
    lines += std::string(event) + ' ' + fields.begin()->value + '\n';
  }};
  EXPECT_TRUE(open_store("sqlite:idem.db", test_settings(), options));
  const std::string place = fs::weakly_canonical(folder.path() / "idem.db");
  EXPECT_EQ(lines, "store_new " + place + '\n');
  EXPECT_TRUE(open_store("sqlite:idem.db", test_settings(), options)) << "and once only";
  EXPECT_EQ(lines, "store_new " + place + '\n');
  testing::internal::CaptureStderr();
  EXPECT_TRUE(open_store("sqlite:other.db", test_settings()));
  EXPECT_TRUE(open_store("memory:", test_settings()));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("idem: warning store_new place=\"/")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  fs::current_path(before);
}

TEST(WhichStoreMemory, S02_it_begins_anew_each_time) {
  EXPECT_FALSE(open_store("memory:", test_settings(), {.which = {.make = false}}));
  EXPECT_FALSE(open_store("memory:", test_settings(),
                          {.which = {.id = "00000000-0000-4000-8000-000000000001"}}));
}

TEST(WhichStoreRedis, S02_a_connection_that_is_made_anew_names_both_stores) {
  const RedisServer server;
  std::string before_id;
  std::string after_id;
  const auto opened = [&](std::string& id) {
    auto store = open_store(server.url(), test_settings(),
                            {.opened = [&](const OpenedStore& found) { id = found.id; }});
    return std::move(store.value());
  };
  const auto before = opened(before_id);
  server.ask("flushall");
  const auto after = opened(after_id);
  server.ask("client kill type normal");
  const auto until = std::chrono::steady_clock::now() + 30s;
  std::string why;
  while (why.find("another store") == why.npos && std::chrono::steady_clock::now() < until) {
    const auto outcome = ask_and_wait(*before, a_reserve(*before));
    ASSERT_FALSE(outcome.has_value());
    why = outcome.error().detail;
    back_off();
  }
  EXPECT_NE(why.find(before_id), why.npos) << why;
  EXPECT_NE(why.find(after_id), why.npos) << why;
}

}  // namespace
}  // namespace idem::test
