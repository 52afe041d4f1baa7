#include "core/bytes/hex.hpp"
#include "core/record/sealed_parts.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store/sealed_store.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>
#include <iostream>
#include <random>

/// An attacker who can write to the store's tables, and makes each checksum fit, moves, swaps,
/// edits and cuts encrypted answers (protocol.md §14): none opens, none is replayed, no key runs
/// again.
namespace idem::test {
namespace {

constexpr int rows = 1'000;

std::uint64_t attack_seed() {
  const char* const given = std::getenv("IDEM_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

RecordId id_of(int number) {
  RecordId id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    id.bytes[i] = static_cast<std::uint8_t>((number * 2654435761U) >> (8 * (i % 4)));
  }
  id.bytes[14] = static_cast<std::uint8_t>(number >> 8);
  id.bytes[15] = static_cast<std::uint8_t>(number);
  return id;
}

Reserve attacked_reserve(int number, int token_number, const Store& store) {
  Reserve verb = a_reserve(1, token_number);
  verb.id = id_of(number);
  verb.scope = number % 3 == 0 ? "tenant-1" : "tenant-2";
  verb.generation = store.identity().generation;
  return verb;
}

StoredResponse attacked_answer(int number) {
  // Some lie beside their record.
  return answer(
      number % 7 == 0 ? 402 : 201,
      fmt::format("answer {} {}", number, std::string(number % 10 == 0 ? 2'000 : 20, 'x')));
}

/// The table as its attacker sees it.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual StoredResponse read(const RecordId& id) = 0;
  virtual void write(const RecordId& id, const StoredResponse& response) = 0;
};

class SqliteRows final : public Rows {
 public:
  explicit SqliteRows(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
  }
  ~SqliteRows() override { EXPECT_EQ(sqlite3_close(db_), SQLITE_OK); }

  StoredResponse read(const RecordId& id) override {
    StoredResponse response;
    auto* const statement =
        prepare("SELECT answer, body FROM idem_slots WHERE substr(id, 1, 16) = ?1");
    bind(statement, 1, view(id));
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const auto decoded = decode_checked_answer(id, blob(statement, 0), blob(statement, 1));
    EXPECT_TRUE(decoded);
    if (decoded) response = *decoded;
    sqlite3_finalize(statement);
    return response;
  }
  void write(const RecordId& id, const StoredResponse& response) override {
    std::string head;
    encode_checked_answer(id, response, head);
    auto* const statement =
        prepare("UPDATE idem_slots SET answer = ?2, body = ?3 WHERE substr(id, 1, 16) = ?1");
    bind(statement, 1, view(id));
    bind(statement, 2, head);
    bind(statement, 3, response.body);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
    EXPECT_EQ(sqlite3_changes(db_), 1);
    sqlite3_finalize(statement);
  }

 private:
  static std::string_view view(const RecordId& id) {
    return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
  }
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db_);
    return statement;
  }
  static void bind(sqlite3_stmt* statement, int place, std::string_view bytes) {
    sqlite3_bind_blob(statement, place, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_TRANSIENT);
  }
  static std::string blob(sqlite3_stmt* statement, int place) {
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement, place));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement, place))};
  }

  sqlite3* db_ = nullptr;
};

class PostgresRows final : public Rows {
 public:
  explicit PostgresRows(const std::string& uri) : session_(uri) {
    session_.run(
        "CREATE FUNCTION kept(of uuid, wants_head boolean) RETURNS text LANGUAGE sql AS $$"
        " SELECT encode(CASE WHEN wants_head THEN coalesce(s.response_head, a.head)"
        "   ELSE coalesce(s.response_body, a.body) END, 'hex')"
        " FROM idem.slots s LEFT JOIN idem.answers a ON a.number = s.answer WHERE s.id = of $$;"
        "CREATE FUNCTION put(of uuid, h bytea, b bytea) RETURNS void LANGUAGE sql AS $$"
        " UPDATE idem.answers a SET head = h, body = b"
        "   WHERE a.number = (SELECT answer FROM idem.slots WHERE id = of);"
        " UPDATE idem.slots SET response_head = CASE WHEN answer IS NULL THEN h END,"
        "   response_body = CASE WHEN answer IS NULL THEN b END,"
        "   response_status = idem.status_of(h), body_kept = idem.has_body(h),"
        "   checksum = idem.checksum(id, fingerprint, h, b) WHERE id = of $$;");
  }

  StoredResponse read(const RecordId& id) override {
    const auto part = [&](const char* which) {
      const std::string hex =
          session_.run(fmt::format("SELECT kept('{}', {})", to_hex(id.bytes), which));
      std::string bytes;
      for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
      }
      return bytes;
    };
    auto response = decode_answer(part("true"));
    EXPECT_TRUE(response);
    if (!response) return {};
    response->body = part("false");
    return *response;
  }
  void write(const RecordId& id, const StoredResponse& response) override {
    std::string head;
    encode_answer(response, head);
    session_.run(fmt::format("SELECT put('{}', '\\x{}', '\\x{}')", to_hex(id.bytes), hex_of(head),
                             hex_of(response.body)));
  }

 private:
  Psql session_;
};

/// One byte of the answer, or its status, becomes another.
void edit(StoredResponse& response, std::mt19937_64& random) {
  std::string& value = response.headers[0].value;
  switch (random() % 4) {
    case 0:
      response.status = response.status == 200 ? 201 : 200;
      return;
    case 1: {
      char& byte = value[random() % value.size()];
      byte = byte == 'A' ? 'B' : 'A';
      return;
    }
    case 2:
      response.headers.push_back({"Location", "/payments/2"});
      return;
    default: {
      char& byte = response.body[random() % response.body.size()];
      byte = static_cast<char>(byte ^ static_cast<char>(1 + random() % 255));
      return;
    }
  }
}

void cut(StoredResponse& response, std::mt19937_64& random) {
  std::string& part = random() % 2 == 0 ? response.body : response.headers[0].value;
  part.resize(random() % part.size());
}

/// Each row is attacked once; `number` from 1.
void attack(Rows& table, std::mt19937_64& random) {
  std::vector<StoredResponse> whole(rows + 1);
  for (int number = 1; number <= rows; ++number) whole[number] = table.read(id_of(number));
  for (int number = 1; number <= rows; ++number) {
    const int other = 1 + (number - 1 + 1 + static_cast<int>(random() % (rows - 1))) % rows;
    const int twin = number % 2 == 0 ? number - 1 : number + 1;  // Also attacks this one.
    StoredResponse next = whole[number];
    switch (number / 2 % 5) {
      case 0:
        next = whole[other];
        break;
      case 1:
        next = whole[twin <= rows ? twin : other];
        break;
      case 2:
        edit(next, random);
        break;
      case 3:
        cut(next, random);
        break;
      default:
        next.body = whole[other].body;
        next.body.resize(whole[number].body.size(), 'x');
        break;
    }
    table.write(id_of(number), next);
  }
}

class SealedAttack : public testing::Test {
 protected:
  void fill(Store& store) {
    for (int number = 1; number <= rows; ++number) {
      const auto outcome = ask_and_wait(store, attacked_reserve(number, 1, store));
      ASSERT_TRUE(outcome && is<Execute>(*outcome));
      const Execute& won = std::get<Execute>(*outcome);
      ASSERT_TRUE(ask_and_wait(store, a_complete(won, attacked_answer(number))));
    }
  }
  /// How many of the rows are replayed as they were.
  int replayed(Store& store) {
    int count = 0;
    for (int number = 1; number <= rows; ++number) {
      const auto reply = ask_and_wait(store, attacked_reserve(number, 2, store));
      const auto* const replay = reply ? std::get_if<Replay>(&*reply) : nullptr;
      if (replay != nullptr && replay->response == attacked_answer(number)) ++count;
    }
    return count;
  }
  void expect_none_opens(Store& store) {
    for (int number = 1; number <= rows; ++number) {
      const auto reply = ask_and_wait(store, attacked_reserve(number, 2, store));
      ASSERT_FALSE(reply) << "row " << number << " " << describe(*reply) << ", seed " << seed_;
      EXPECT_EQ(reply.error().code, StoreError::Code::damaged) << reply.error().detail;
      EXPECT_EQ(reply.error().record, id_of(number));
      const auto found = ask_and_wait(store, Find{id_of(number)});
      ASSERT_FALSE(found) << "row " << number << ", seed " << seed_;
      EXPECT_EQ(found.error().code, StoreError::Code::damaged);
    }
    const auto claimed = ask_and_wait(store, Claim{token(50), "dispatcher", lease, false});
    EXPECT_TRUE(claimed && !*claimed);
    const auto census = ask_and_wait(store, Count{});
    ASSERT_TRUE(census);
    EXPECT_EQ(census->by_state[static_cast<std::size_t>(State::completed)], rows);
    std::cout << fmt::format(
        "{} rows attacked, seed {}: none opened, none was replayed, none ran\n", rows, seed_);
  }

  const std::uint64_t seed_ = attack_seed();
  std::mt19937_64 random_{seed_};
  TempFolder folder_;
  TestClock clock_;
};

EncryptionSettings accepting_clear() {
  EncryptionSettings settings = test_encryption();
  settings.accept_clear = true;
  return settings;
}

TEST_F(SealedAttack, S14_none_of_a_thousand_changed_rows_of_sqlite_opens) {
  const std::string path = folder_.file("idem.db");
  const auto open = [&] {
    return make_sealed(open_by_url("sqlite:" + path, clock_), accepting_clear());
  };
  ASSERT_NO_FATAL_FAILURE(fill(*open()));
  EXPECT_EQ(replayed(*open()), rows);
  {
    SqliteRows table(path);
    attack(table, random_);
  }
  expect_none_opens(*open());
}

TEST_F(SealedAttack, S14_none_of_a_thousand_changed_rows_of_postgres_opens) {
  const TestDatabase database;
  auto below = open_postgres(database.uri(), test_settings(), {});
  ASSERT_TRUE(below);
  const auto store = make_sealed(std::move(*below), accepting_clear());
  ASSERT_NO_FATAL_FAILURE(fill(*store));
  EXPECT_EQ(replayed(*store), rows);
  PostgresRows table(database.uri());
  attack(table, random_);
  expect_none_opens(*store);
}

TEST_F(SealedAttack, S14_an_answer_that_was_put_there_in_clear_is_not_replayed) {
  const std::string path = folder_.file("idem.db");
  const auto open = [&] {
    return make_sealed(open_by_url("sqlite:" + path, clock_), test_encryption());
  };
  ASSERT_NO_FATAL_FAILURE(fill(*open()));
  {
    SqliteRows table(path);
    for (int number = 1; number <= rows; ++number) {
      table.write(id_of(number), answer(200, "forged"));
    }
  }
  expect_none_opens(*open());
}

}  // namespace
}  // namespace idem::test
