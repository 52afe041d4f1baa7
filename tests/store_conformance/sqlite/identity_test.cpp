#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"

#include <idem/fingerprint.hpp>

#include <sqlite3.h>

/// Protocol §2: secrets and settings over the starts of one store.
namespace idem::test {
namespace {

Secret secret(int number) { return secret_from("material " + std::to_string(number)); }

class SqliteIdentity : public testing::Test {
 protected:
  using Opened = std::expected<std::unique_ptr<Store>, StoreError>;

  std::string path() const { return folder.file("idem.db"); }

  Opened open(std::vector<Secret> secrets = {}, const std::string& key_scope = "operation",
              bool migrate = false) {
    return open_sqlite(path(), {key_scope, "header:X-Tenant-Id", std::move(secrets)},
                       {.migrate = migrate, .host = clock.host()});
  }

  std::string refusal(const Opened& store) {
    if (!store) return store.error().detail;
    ADD_FAILURE() << "was opened";
    return {};
  }

  /// The reserve of a node for the request under `key`, by the store's live secrets.
  Reserve reserve(const Store& store, const std::string& key, int token_number = 1) {
    const Identity& identity = store.identity();
    const RequestDigest digest({.method = "POST",
                                .target = "/v1",
                                .content_type = "text/plain",
                                .chosen_headers = {},
                                .body = "please"});
    Reserve verb = a_reserve(1, token_number);
    verb.id = record_id(identity.secret, "t", "pay", key);
    verb.fingerprints = digest.under(identity.secret);
    for (const Secret& older : identity.older) {
      verb.also.push_back({record_id(older, "t", "pay", key), digest.under(older)});
    }
    verb.generation = identity.generation;
    return verb;
  }

  void complete(Store& store, const std::string& key) {
    const auto outcome = ask_and_wait(store, reserve(store, key));
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    ASSERT_TRUE(ask_and_wait(store, a_complete(std::get<Execute>(*outcome))));
  }
  bool replays(Store& store, const std::string& key) {
    const auto outcome = ask_and_wait(store, reserve(store, key, 9));
    return outcome && is<Replay>(*outcome);
  }

  std::string sql(const std::string& text) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    std::string answer;
    const auto keep = [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) += std::string(values[0] ? values[0] : "") + ";";
      return 0;
    };
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), keep, &answer, &message), SQLITE_OK) << message;
    sqlite3_close(db);
    return answer;
  }

  TestClock clock;
  TempFolder folder;
};

void expect_has(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(SqliteIdentity, T47_secrets_rotate_and_every_record_is_found) {
  Secret own;
  {
    const auto store = open();
    ASSERT_TRUE(store) << store.error().detail;
    own = (*store)->identity().secret;
    complete(**store, "a");
  }
  std::uint64_t generation = 1;
  for (const int newest : {1, 2}) {
    std::vector<Secret> secrets;
    for (int number = newest; number > 0; --number) secrets.push_back(secret(number));
    const auto store = open(secrets);
    ASSERT_TRUE(store) << store.error().detail;
    const Identity& identity = (*store)->identity();
    EXPECT_EQ(identity.generation, ++generation);
    EXPECT_EQ(identity.secret, secret(newest));
    EXPECT_EQ(identity.older.size(), static_cast<std::size_t>(newest)) << "the store's own, too";
    EXPECT_EQ(identity.scope_secret, own) << "scopes stay what they were";
    EXPECT_TRUE(replays(**store, "a"));
    complete(**store, "under " + std::to_string(newest));
  }
  const auto store = open({secret(2), secret(1)});
  ASSERT_TRUE(store) << store.error().detail;
  EXPECT_EQ((*store)->identity().generation, generation) << "nothing new, no new generation";
  EXPECT_EQ((*store)->identity().older, (std::vector<Secret>{secret(1), own}));
  for (const std::string key : {"a", "under 1", "under 2"})
    EXPECT_TRUE(replays(**store, key)) << key;
}

TEST_F(SqliteIdentity, T47_a_secret_with_records_cannot_be_dropped) {
  complete(**open({secret(1)}), "a");
  const std::string swapped = refusal(open({secret(2)}));
  expect_has(swapped, secret_id(secret(1)));
  expect_has(swapped, "after the others");
  expect_has(swapped, path());
  expect_has(refusal(open()), secret_id(secret(1)));
  const auto store = open({secret(2), secret(1)});
  ASSERT_TRUE(store) << "the refusals changed nothing: " << store.error().detail;
  EXPECT_TRUE(replays(**store, "a"));
}

TEST_F(SqliteIdentity, T47_a_secret_whose_records_are_gone_may_go) {
  {
    const auto store = open({secret(1)});
    Reserve verb = reserve(**store, "a");
    verb.tombstone = 0s;
    const auto outcome = ask_and_wait(**store, verb);
    ASSERT_TRUE(ask_and_wait(**store, a_complete(std::get<Execute>(*outcome))));
  }
  EXPECT_FALSE(open({secret(2)}));
  clock.advance(retention);
  const auto store = open({secret(2)});
  ASSERT_TRUE(store) << store.error().detail;
  EXPECT_TRUE((*store)->identity().older.empty());
}

TEST_F(SqliteIdentity, T47_a_running_record_keeps_its_secret_needed) {
  {
    const auto store = open({secret(1)});
    ASSERT_TRUE(ask_and_wait(**store, reserve(**store, "a")));
  }
  clock.advance(retention + tombstone);
  expect_has(refusal(open({secret(2)})), secret_id(secret(1)));
}

TEST_F(SqliteIdentity, T47_an_unreadable_record_may_be_of_any_secret) {
  complete(**open({secret(1)}), "a");
  sql("UPDATE idem_slots SET record = x'00'");
  EXPECT_FALSE(open({secret(2)}));
  EXPECT_TRUE(open({secret(2), secret(1)}));
}

TEST_F(SqliteIdentity, S02_secrets_are_known_in_the_file_by_their_ids_alone) {
  complete(**open({secret(1)}), "a");
  EXPECT_EQ(sql("SELECT id FROM idem_digest_secrets"), secret_id(secret(1)) + ";");
}

TEST_F(SqliteIdentity, S02_an_empty_store_accepts_any_settings) {
  ASSERT_TRUE(open());
  {
    const auto store = open({secret(1)}, "tenant");
    ASSERT_TRUE(store) << store.error().detail;
    EXPECT_EQ((*store)->identity().generation, 2U);
    complete(**store, "a");
  }
  expect_has(refusal(open({secret(1)}, "operation")), "key.scope is 'tenant'");
  expect_has(refusal(open({secret(1)}, "sometimes")), "write operation or tenant");
}

TEST_F(SqliteIdentity, S02_where_a_key_is_unique_in_its_scope_names_of_routes_may_change) {
  const auto store = open({}, "tenant");
  const auto adopt = [&](const std::string& name) {
    return *ask_and_wait(**store, AdoptRoutes{{{{}, "/v1", name, {}}}});
  };
  EXPECT_EQ(adopt("pay"), (AdoptRoutes::Reply{1, ""}));
  complete(**store, "a");
  EXPECT_EQ(adopt("charge"), (AdoptRoutes::Reply{1, ""}));
  EXPECT_TRUE(replays(**store, "a"));
}

}  // namespace
}  // namespace idem::test
