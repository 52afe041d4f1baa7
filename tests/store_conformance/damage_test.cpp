#include "store/postgres/postgres_store.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/redis/asking.hpp"
#include "support/postgres.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>

/// Protocol §22: damage is never a replay, and never lets a key run again.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

int number_from(const char* variable, int otherwise) {
  const char* const given = std::getenv(variable);
  return given != nullptr ? std::atoi(given) : otherwise;
}

unsigned seed_of_run() { return static_cast<unsigned>(number_from("IDEM_SEED", 20'261'123)); }

std::string text_of(int number) {
  const std::size_t size = number % 5 == 0 ? 9'000 : static_cast<std::size_t>(40 + 13 * number);
  std::string text = fmt::format("answer {} ", number);
  while (text.size() < size) text += fmt::format("{:08x}", number * 2654435761U + text.size());
  return text;
}

enum class Kind { completed, unknown, pending, running, released };
Kind kind_of(int number) {
  constexpr std::array kinds{Kind::completed, Kind::completed, Kind::completed, Kind::unknown,
                             Kind::pending,   Kind::running,   Kind::released};
  return kinds[static_cast<std::size_t>(number) % kinds.size()];
}

Reserve spread(int number, int token_number = 1) {
  Reserve verb = a_reserve(number, token_number);
  verb.id.bytes[0] = static_cast<std::uint8_t>(number * 37);  // Ids are digests: in any order.
  verb.lease = std::chrono::hours(10);
  verb.generation = 1;
  return verb;
}

void make_one(Store& store, int number) {
  if (kind_of(number) == Kind::pending) {
    const auto accepted = ask_and_wait(store, Accept{spread(number), text_of(number)});
    ASSERT_TRUE(accepted && is<Pending>(*accepted));
    return;
  }
  const auto outcome = ask_and_wait(store, spread(number));
  ASSERT_TRUE(outcome && is<Execute>(*outcome));
  const Execute& won = std::get<Execute>(*outcome);
  switch (kind_of(number)) {
    case Kind::completed:
      ASSERT_TRUE(ask_and_wait(store, a_complete(won, answer(201, text_of(number)))));
      return;
    case Kind::unknown:
      ASSERT_TRUE(ask_and_wait(store, a_mark_unknown(won)));
      return;
    case Kind::released:
      ASSERT_TRUE(ask_and_wait(store, a_release(won)));
      return;
    case Kind::pending:
    case Kind::running:
      return;
  }
}

enum class AnswerKind { truth, damaged, wrong };

/// Judges the answer that a retry gets and the record that is read.
AnswerKind answer_kind(Store& store, int number, const std::string& truth) {
  const auto found = ask_and_wait(store, Find{spread(number).id});
  if (!found) {
    if (found.error().code != StoreError::Code::damaged) return AnswerKind::wrong;
    const auto retry = ask_and_wait(store, spread(number, 2));
    // Its request is read by the next claim.
    if (retry && is<Pending>(*retry)) return AnswerKind::damaged;
    const bool is_kept = !retry && retry.error().code == StoreError::Code::damaged &&
                         retry.error().record == spread(number).id;
    return is_kept ? AnswerKind::damaged : AnswerKind::wrong;
  }
  if (describe(*found) != truth) return AnswerKind::wrong;
  const auto retry = ask_and_wait(store, spread(number, 2));
  if (!retry)
    return retry.error().code == StoreError::Code::damaged ? AnswerKind::damaged
                                                           : AnswerKind::wrong;
  switch (kind_of(number)) {
    case Kind::completed: {
      const auto* const replay = std::get_if<Replay>(&*retry);
      const bool is_it = replay != nullptr && replay->response == answer(201, text_of(number));
      return is_it ? AnswerKind::truth : AnswerKind::wrong;
    }
    case Kind::unknown:
      return is<Unknown>(*retry) ? AnswerKind::truth : AnswerKind::wrong;
    case Kind::pending:
      return is<Pending>(*retry) ? AnswerKind::truth : AnswerKind::wrong;
    case Kind::running:
      return is<InProgress>(*retry) ? AnswerKind::truth : AnswerKind::wrong;
    case Kind::released:
      return is<Execute>(*retry) ? AnswerKind::truth : AnswerKind::wrong;
  }
  return AnswerKind::wrong;
}

/// Exit status of a process that opened the damaged file and asked for all keys.
enum Ending : int { all_true = 0, some_damaged = 1, refused_start = 2, wrong_answer = 3 };

class SqliteDamage : public testing::Test {
 protected:
  static constexpr int keys = 28;

  void SetUp() override {
    const auto store = open(path("idem.db"));
    ASSERT_TRUE(store);
    for (int number = 1; number <= keys; ++number) make_one(**store, number);
    for (int number = 1; number <= keys; ++number) {
      truth_[number] = describe(*ask_and_wait(**store, Find{spread(number).id}));
    }
    secret_ = (*store)->identity().secret;
  }

  std::string path(const std::string& name) const { return folder_.file(name); }
  Opened open(const std::string& at) const {
    return open_sqlite(at, test_settings(), {.host = clock_.host()});
  }

  int ask_all(const std::string& file) const {
    const auto store = open(file);
    if (!store) return refused_start;
    if ((*store)->identity().secret != secret_) return is_wrong("the secret");
    int ending = all_true;
    for (int number = 1; number <= keys; ++number) {
      const AnswerKind kind = answer_kind(**store, number, truth_.at(number));
      if (kind == AnswerKind::wrong) return is_wrong(fmt::format("key {}", number));
      if (kind == AnswerKind::damaged) ending = some_damaged;
    }
    for (int claims = 0; claims < 20; ++claims) {
      const auto claimed = ask_and_wait(**store, Claim{token(50), "dispatcher", lease, true});
      if (!claimed) ending = some_damaged;
      if (!claimed || !*claimed) continue;
      const bool is_true = std::ranges::any_of(truth_, [&](const auto& one) {
        return spread(one.first).id == (*claimed)->id && text_of(one.first) == (*claimed)->request;
      });
      if (!is_true) return is_wrong("a request");
    }
    // It blocks no other record.
    clock_.advance(2 * retention);
    for (int turn = 0; turn < 40; ++turn) {
      const auto swept = ask_and_wait(**store, Sweep{10});
      const auto reaped = ask_and_wait(**store, Reap{10});
      if (swept && reaped && swept->empty() && reaped->empty()) return ending;
    }
    return is_wrong("it is swept or reaped without end");
  }

  static int is_wrong(const std::string& what) {
    std::cout << "wrong: " << what << std::endl;
    return wrong_answer;
  }

  TempFolder folder_;
  mutable TestClock clock_;
  std::map<int, std::string> truth_;
  std::array<std::uint8_t, 32> secret_{};
};

TEST_F(SqliteDamage, S22_each_key_of_a_damaged_file_gets_its_answer_or_a_damaged_error) {
  const unsigned seed = seed_of_run();
  std::mt19937_64 random(seed);
  std::string bytes;
  {
    std::ifstream file(path("idem.db"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const int files = number_from("IDEM_DAMAGED_FILES", 150);
  std::map<int, int> endings;
  for (int number = 0; number < files; ++number) {
    std::string damaged = bytes;
    std::string where;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      const std::size_t at = random() % damaged.size();
      const auto by = random() % 2 == 0 ? 1 << random() % 8 : 1 + random() % 255;
      damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(by));
      where += fmt::format(" {}^{:02x}", at, static_cast<unsigned>(by));
    }
    std::ofstream(path("damaged.db"), std::ios::binary) << damaged;
    const pid_t child = ::fork();
    if (child == 0) {
      (void)!std::freopen("/dev/null", "w", stderr);
      ::_exit(ask_all(path("damaged.db")));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    // Met while it was served, SQLite's own findings end the process: it fails closed.
    const int ending = WIFEXITED(status) ? WEXITSTATUS(status) : refused_start;
    ++endings[ending];
    EXPECT_NE(ending, wrong_answer) << "file " << number << ", bytes" << where << ", seed " << seed;
    for (const char* const rest : {"damaged.db", "damaged.db-wal"}) fs::remove(path(rest));
  }
  std::cout << fmt::format(
      "{} damaged files of {} keys, seed {}: {} true, {} with damaged records, {} refused\n", files,
      keys, seed, endings[all_true], endings[some_damaged], endings[refused_start]);
  EXPECT_GT(endings[some_damaged], files / 10);
}

TEST(RedisDamage, S22_each_key_gets_its_answer_or_a_damaged_error) {
  const unsigned seed = seed_of_run();
  std::mt19937_64 random(seed);
  const RedisServer server;
  const auto store = open_at(server.url());
  constexpr int keys = 14;
  std::map<int, std::string> truth;
  for (int number = 1; number <= keys; ++number) {
    if (kind_of(number) == Kind::released) continue;  // Asking changes it.
    make_one(*store, number);
  }
  for (int number = 1; number <= keys; ++number) {
    truth[number] = describe(*ask_and_wait(*store, Find{spread(number).id}));
  }
  // The values of records, answers and requests; done twice, it is undone.
  const std::string flip =
      "local k = redis.call(\"keys\", \"{*}[raq]????????????????\") table.sort(k)"
      " local name = k[ARGV[1] % #k + 1] local v = redis.call(\"get\", name)"
      " local at = ARGV[2] % #v + 1"
      " redis.call(\"set\", name, string.sub(v, 1, at - 1)"
      " .. string.char(bit.bxor(string.byte(v, at), ARGV[3])) .. string.sub(v, at + 1))"
      " return #k";
  const int rounds = number_from("IDEM_DAMAGED_VALUES", 120);
  std::map<AnswerKind, int> counts;
  for (int round = 0; round < rounds; ++round) {
    const std::string change = fmt::format("eval '{}' 0 {} {} {}", flip, random() % 100'000,
                                           random() % 100'000, 1 + random() % 255);
    ASSERT_NE(server.ask(change).find_first_of("0123456789"), std::string::npos);
    for (int number = 1; number <= keys; ++number) {
      if (kind_of(number) == Kind::released) continue;
      const AnswerKind one = answer_kind(*store, number, truth[number]);
      ++counts[one];
      EXPECT_NE(one, AnswerKind::wrong) << "key " << number << ", " << change << ", seed " << seed;
    }
    server.ask(change);
  }
  std::cout << fmt::format("{} damaged values, seed {}: {} true, {} damaged\n", rounds, seed,
                           counts[AnswerKind::truth], counts[AnswerKind::damaged]);
  EXPECT_GT(counts[AnswerKind::damaged], rounds / 3);
}

/// A store whose generation is that of the reserves above; otherwise it is random.
std::unique_ptr<Store> open_in_first_generation(const TestDatabase& database) {
  auto store = *open_postgres(database.uri(), test_settings(), {});
  Psql(database.uri()).run("UPDATE idem.identity SET generation = 1");
  return store;
}

TEST(PostgresDamage, S22_each_key_gets_its_answer_or_a_damaged_error) {
  const unsigned seed = seed_of_run();
  std::mt19937_64 random(seed);
  const TestDatabase database;
  const auto store = open_in_first_generation(database);
  Psql session(database.uri());
  constexpr int keys = 15;  // The last one is large.
  std::map<int, std::string> truth;
  for (int number = 1; number <= keys; ++number) {
    if (kind_of(number) == Kind::released) continue;  // Asking changes it.
    make_one(*store, number);
  }
  for (int number = 1; number <= keys; ++number) {
    truth[number] = describe(*ask_and_wait(*store, Find{spread(number).id}));
  }
  ASSERT_NE(session.run("SELECT count(*) FROM idem.answers"), "0") << "none is large";
  // Answers, requests and their checksums; done twice, it is undone.
  struct Place {
    const char* table;
    const char* column;
    const char* row;
  };
  constexpr std::array places{
      Place{"idem.slots", "response_head", "id"}, Place{"idem.slots", "response_body", "id"},
      Place{"idem.slots", "checksum", "id"},      Place{"idem.slots", "request", "id"},
      Place{"idem.answers", "head", "number"},    Place{"idem.answers", "body", "number"},
  };
  const int rounds = number_from("IDEM_DAMAGED_VALUES", 120);
  std::map<AnswerKind, int> counts;
  for (int round = 0; round < rounds; ++round) {
    const Place& place = places[static_cast<std::size_t>(round) % places.size()];
    const std::string change = fmt::format(
        "WITH one AS (SELECT ctid, tableoid, {1} % octet_length({0}) AS at FROM {3} WHERE {0} IS "
        "NOT NULL"
        " ORDER BY {4} OFFSET {2} % (SELECT count(*) FROM {3} WHERE {0} IS NOT NULL) LIMIT 1)"
        " UPDATE {3} t SET {0} = set_byte({0}, one.at, get_byte({0}, one.at) # {5}) FROM one"
        " WHERE t.ctid = one.ctid AND t.tableoid = one.tableoid RETURNING 1",
        place.column, random() % 100'000, random() % 100'000, place.table, place.row,
        1 + random() % 255);
    ASSERT_EQ(session.run(change).substr(0, 1), "1") << change;
    int damaged = 0;
    for (int number = 1; number <= keys; ++number) {
      if (kind_of(number) == Kind::released) continue;
      const AnswerKind one = answer_kind(*store, number, truth[number]);
      ++counts[one];
      if (one == AnswerKind::damaged) ++damaged;
      EXPECT_NE(one, AnswerKind::wrong) << "key " << number << ", " << change << ", seed " << seed;
    }
    EXPECT_EQ(damaged, 1) << change;
    session.run(change);
  }
  std::cout << fmt::format("{} damaged values, seed {}: {} true, {} damaged\n", rounds, seed,
                           counts[AnswerKind::truth], counts[AnswerKind::damaged]);
}

TEST(PostgresDamage, S22_a_request_that_is_damaged_is_claimed_by_nobody_and_expires) {
  const TestDatabase database;
  const auto store = open_in_first_generation(database);
  Psql session(database.uri());
  Reserve verb = spread(4);
  ASSERT_TRUE(is<Pending>(*ask_and_wait(*store, Accept{verb, "pay 5"})));
  session.run("UPDATE idem.slots SET request = 'pay 9'");
  const auto claimed = ask_and_wait(*store, Claim{token(1), "dispatcher", Millis(1000), false});
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, StoreError::Code::damaged);
  EXPECT_EQ(claimed.error().record, verb.id);
  // It does not stand in the way of others.
  ASSERT_TRUE(is<Pending>(*ask_and_wait(*store, Accept{spread(5), "pay 6"})));
  const auto next = ask_and_wait(*store, Claim{token(2), "dispatcher", Millis(1000), false});
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->request, "pay 6");
  const auto none = ask_and_wait(*store, Claim{token(3), "dispatcher", Millis(1000), false});
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  session.run("UPDATE idem.slots SET expires_at = idem.now() WHERE state = 'pending'");
  const auto retry = ask_and_wait(*store, spread(4, 2));
  ASSERT_TRUE(retry && is<Replay>(*retry));
  EXPECT_EQ(std::get<Replay>(*retry).response.status, 408);
}

TEST(PostgresDamage, S22_an_attempt_without_its_fence_is_damage_and_is_not_granted_again) {
  const TestDatabase database;
  const auto store = open_in_first_generation(database);
  const Reserve verb = spread(5);
  ASSERT_TRUE(is<Execute>(*ask_and_wait(*store, verb)));
  Psql(database.uri()).run("UPDATE idem.slots SET fence = 0");
  const auto found = ask_and_wait(*store, Find{verb.id});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, StoreError::Code::damaged);
  EXPECT_NE(found.error().detail.find("its attempt has a token and no fence"), std::string::npos)
      << found.error().detail;
  const auto repeated = ask_and_wait(*store, verb);
  ASSERT_TRUE(repeated && is<InProgress>(*repeated)) << "also for the token that it was granted to";
}

TEST(PostgresDamage, S22_the_sql_face_answers_no_damaged_answer) {
  const TestDatabase database;
  auto store = *open_postgres(database.uri(), test_settings(), {});
  Psql session(database.uri());
  constexpr const char* pay = "'shop', 'pay', 'k', 'amount=5'";
  const std::string attempt = session.run(
      std::string("SELECT format('%L, %s, %L', operation, fence, attempt) FROM idem.reserve(") +
      pay + ")");
  for (const char* const damage :
       {"response_body = 'paid 9'", "response_body = NULL", "response_head = NULL",
        "response_status = 503", "body_kept = false",
        "response_head = set_byte(response_head, 1, 202)",
        "fingerprint = set_byte(fingerprint, 9, 1 # get_byte(fingerprint, 9))"}) {
    session.run(
        "UPDATE idem.slots SET state = 'in_progress', checksum = NULL, locked_until = idem.now() + "
        "'1 h', completed_at = NULL, tombstone_until = NULL, response_status = NULL,"
        " response_head = NULL, response_body = NULL, body_kept = NULL");
    session.run("SELECT idem.complete(" + attempt + ", 201, '[]', 'paid 5')");
    const std::string operation = attempt.substr(0, attempt.find(','));
    EXPECT_EQ(session.run("SELECT response_status FROM idem.find(" + operation + ")"), "201");
    session.run(std::string("UPDATE idem.slots SET ") + damage);
    EXPECT_EQ(session.try_run("SELECT idem.find(" + operation + ")"), "IDM08") << damage;
    const std::string outcome =
        session.run(std::string("SELECT outcome FROM idem.reserve(") + pay + ")");
    EXPECT_EQ(outcome, "damaged") << damage;
  }
}

// One that is due would otherwise be reported by each sweep, and a sweep of all due never end.
TEST(RedisDamage, S22_a_damaged_record_that_is_due_is_reported_once) {
  const RedisServer server;
  const auto store = open_at(server.url());
  Reserve verb = spread(1);
  verb.retention = Millis(1);
  const auto won = ask_and_wait(*store, verb);
  ASSERT_TRUE(won && is<Execute>(*won));
  ASSERT_TRUE(ask_and_wait(*store, a_complete(std::get<Execute>(*won))));
  server.ask(
      "eval 'local k = redis.call(\"keys\", \"{*}r????????????????\")"
      " local v = redis.call(\"get\", k[1])"
      " local last = string.char(bit.bxor(string.byte(v, #v), 1))"
      " redis.call(\"set\", k[1], string.sub(v, 1, -2) .. last) return #k' 0");
  std::vector<LifecycleStep> reported;
  const auto until = MonotonicClock::now() + std::chrono::seconds(30);
  while (reported.empty()) {  // Until the server's clock is a millisecond on.
    ASSERT_LT(MonotonicClock::now(), until);
    const auto steps = ask_and_wait(*store, Reap{100});
    ASSERT_TRUE(steps);
    reported = *steps;
  }
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_TRUE(reported[0].damaged);
  const auto again = ask_and_wait(*store, Reap{100});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->empty());
  EXPECT_FALSE(ask_and_wait(*store, spread(1, 2))) << "its key does not run";
}

}  // namespace
}  // namespace idem::test
