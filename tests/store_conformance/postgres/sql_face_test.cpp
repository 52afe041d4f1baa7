#include "store/postgres/postgres_store.hpp"
#include "store_conformance/harness.hpp"
#include "support/external_data.hpp"

#include <idem/fingerprint.hpp>

#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <thread>

/// The functions that a service calls in its own transaction (protocol.md §17).
namespace idem::test {
namespace {

class SqlFace : public testing::Test {
 protected:
  SqlFace() {
    auto store = open_postgres(database_.uri(), test_settings(), {});
    if (!store) std::abort();
    store_ = std::move(*store);
    session_ = std::make_unique<Psql>(database_.uri());
    session_->run("CREATE TABLE payments (id text PRIMARY KEY, amount int)");
  }

  Execute gateway_reserves(int key_number) {
    Reserve verb = a_reserve(key_number);
    verb.generation = store_->identity().generation;
    const auto outcome = ask_and_wait(*store_, verb);
    if (outcome && is<Execute>(*outcome)) return std::get<Execute>(*outcome);
    ADD_FAILURE() << "no attempt";
    return {};
  }
  static std::string args(const Execute& run) {
    return fmt::format("'{}', {}, '{}'", to_hex(run.id.bytes), run.attempt.fence,
                       to_hex(run.attempt.token.bytes));
  }
  std::string payments() { return session_->run("SELECT count(*) FROM payments"); }
  std::string reserve(const std::string& what, const std::string& rest) {
    return session_->run("SELECT " + what + " FROM idem.reserve(" + rest + ")");
  }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Psql> session_;
};

constexpr const char* pay_arguments = "'tenant-1', 'pay', 'k', 'amount=5'";

TEST_F(SqlFace, S22_a_completion_that_contradicts_an_event_is_contested) {
  const Execute attempt = gateway_reserves(1);
  Resolve event = a_resolve(1, Resolve::As::completed, attempt.attempt.fence);
  event.denies = true;
  EXPECT_EQ(ask_and_wait(*store_, event)->verdict, Resolve::Verdict::wrong_state);
  session_->run("SELECT idem.complete(" + args(attempt) + ", 201)");
  EXPECT_TRUE(ask_and_wait(*store_, Find{key(1)}).value()->is_contested);
}

TEST_F(SqlFace, S17_T57_rows_and_completion_are_one_commit) {
  const Execute attempt = gateway_reserves(1);
  session_->run("BEGIN; INSERT INTO payments VALUES ('p', 5)");
  session_->run("SELECT idem.complete(" + args(attempt) + ", 201, '[[\"X-A\", \"b\"]]', 'paid')");
  session_->run("ROLLBACK");
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(ask_and_wait(*store_, Find{key(1)}).value()->state, State::in_progress);
  session_->run("BEGIN; INSERT INTO payments VALUES ('p', 5)");
  session_->run("SELECT idem.complete(" + args(attempt) + ", 201, '[[\"X-A\", \"b\"]]', 'paid')");
  session_->run("COMMIT");
  const auto record = ask_and_wait(*store_, Find{key(1)}).value();
  EXPECT_EQ(record->response->body, "paid");
  EXPECT_EQ(record->response->headers, (std::vector<Field>{{"X-A", "b"}}));
  EXPECT_EQ(payments(), "1");
}

TEST_F(SqlFace, S17_a_late_owner_raises_and_its_rows_are_gone) {
  const Execute attempt = gateway_reserves(1);
  Execute other = attempt;
  other.attempt.fence += 1;
  for (const std::string verb : {"complete({}, 201)", "advance({}, 'charged')", "renew({})",
                                 "release({})", "mark_unknown({})"}) {
    session_->run("BEGIN; INSERT INTO payments VALUES ('p', 5)");
    const std::string call = fmt::format(fmt::runtime("SELECT idem." + verb), args(other));
    EXPECT_EQ(session_->try_run(call), "IDM01") << call;
    session_->run("COMMIT");  // Of a failed transaction: a rollback.
    EXPECT_EQ(payments(), "0");
    const std::string twin =
        fmt::format(fmt::runtime("SELECT (idem.try_" + verb + ").verdict"), args(other));
    EXPECT_EQ(session_->run(twin), "stale") << twin;
  }
  session_->run("SELECT idem.complete(" + args(attempt) + ", 201)");
  session_->run("BEGIN; INSERT INTO payments VALUES ('p', 5)");
  EXPECT_EQ(session_->try_run("SELECT idem.complete(" + args(attempt) + ", 201)"), "IDM02");
  session_->run("COMMIT");
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(session_->run("SELECT (idem.try_complete(" + args(attempt) + ", 201)).verdict"),
            "settled");
}

TEST_F(SqlFace, S17_a_handler_that_touches_only_the_database_needs_one_transaction) {
  session_->run("BEGIN");
  const std::string row = reserve("operation || ' ' || fence || ' ' || attempt", pay_arguments);
  std::istringstream words(row);
  std::string operation, fence, attempt;
  words >> operation >> fence >> attempt;
  session_->run("INSERT INTO payments VALUES ('p', 5)");
  session_->run(fmt::format("SELECT idem.complete('{}', {}, '{}', 201, '[]', 'paid')", operation,
                            fence, attempt));
  Psql rival(database_.uri());
  rival.run("SET lock_timeout = '20ms'");
  EXPECT_EQ(rival.run(std::string("SELECT outcome FROM idem.reserve(") + pay_arguments + ")"),
            "in_progress");
  session_->run("COMMIT");
  EXPECT_EQ(rival.run(std::string("SELECT outcome FROM idem.reserve(") + pay_arguments + ")"),
            "replay");
  EXPECT_EQ(reserve("convert_from(response_body, 'UTF8')", pay_arguments), "paid");
  EXPECT_EQ(reserve("outcome", "'tenant-1', 'pay', 'k', 'amount=6'"), "key_misuse");
  EXPECT_EQ(reserve("outcome", "'tenant-2', 'pay', 'k', 'amount=5'"), "execute");
}

TEST_F(SqlFace, V02_another_request_under_the_key_is_misuse_and_the_record_stays_as_it_was) {
  const auto is_misuse = [this] {
    const std::string before = session_->run("SELECT s::text FROM idem.slots s");
    EXPECT_EQ(reserve("outcome", "'tenant-1', 'pay', 'k', 'amount=6'"), "key_misuse");
    EXPECT_EQ(reserve("is_other", "'tenant-1', 'pay', 'k', 'amount=6'"), "f")
        << "Idem does not read the bytes that the service gives";
    EXPECT_EQ(session_->run("SELECT s::text FROM idem.slots s"), before);
  };
  const auto end = [this](const std::string& verb, const std::string& more) {
    session_->run("SELECT idem." + verb + "(id, fence, token" + more + ") FROM idem.slots");
  };
  EXPECT_EQ(reserve("outcome", pay_arguments), "execute");
  is_misuse();
  end("release", "");
  is_misuse();
  EXPECT_EQ(reserve("outcome", pay_arguments), "execute");
  end("complete", ", 201, '[]', 'paid'");
  is_misuse();
  EXPECT_EQ(reserve("convert_from(response_body, 'UTF8')", pay_arguments), "paid");
}

TEST_F(SqlFace, V03_two_tenants_with_one_key_are_independent) {
  const auto of = [](const std::string& tenant) { return "'" + tenant + "', 'pay', 'k', 'x'"; };
  const auto complete = [this](const std::string& tenant) {
    session_->run(
        fmt::format("SELECT idem.complete(id, fence, token, 201, "
                    "'[]', '{0} paid')"
                    " FROM idem.slots WHERE scope = '{0}'",
                    tenant));
  };
  EXPECT_EQ(reserve("outcome", of("one")), "execute");
  complete("one");
  EXPECT_EQ(reserve("outcome", of("two")), "execute");
  EXPECT_EQ(reserve("outcome", of("two")), "in_progress");
  complete("two");
  for (const std::string tenant : {"one", "two"}) {
    EXPECT_EQ(reserve("convert_from(response_body, 'UTF8')", of(tenant)), tenant + " paid");
  }
}

/// Services with connections of their own retry the same payments, each at the same instant.
TEST_F(SqlFace, V09_of_many_at_once_one_pays) {
  constexpr int services = 8;
  constexpr int keys = 20;
  std::atomic<int> paid = 0;
  std::atomic<int> replayed = 0;
  std::barrier together(services);
  std::vector<std::thread> threads;
  for (int service = 0; service < services; ++service) {
    threads.emplace_back([&, service] {
      Psql session(database_.uri());
      session.run("SET lock_timeout = '10s'");
      for (int i = 0; i < keys; ++i) {
        together.arrive_and_wait();
        session.run("BEGIN");
        const auto reserved = session.run(
            fmt::format("SELECT outcome || format(' %L, %s, %L', operation, fence, attempt)"
                        " FROM idem.reserve('t', 'pay', 'k{}', 'x')",
                        i));
        if (reserved.starts_with("execute ")) {
          session.run(fmt::format("INSERT INTO payments VALUES ('{} by {}', {})", i, service, i));
          session.run("SELECT idem.complete(" + reserved.substr(8) + ", 201)");
          ++paid;
        } else {
          EXPECT_TRUE(reserved.starts_with("replay ")) << reserved;
          ++replayed;
        }
        session.run("COMMIT");
      }
    });
  }
  for (auto& one : threads) one.join();
  EXPECT_EQ(paid, keys);
  EXPECT_EQ(replayed, keys * (services - 1));
  EXPECT_EQ(session_->run("SELECT count(DISTINCT amount) FROM payments"), std::to_string(keys));
  EXPECT_EQ(payments(), std::to_string(keys));
}

TEST_F(SqlFace, V13_T56_a_waiter_in_vain_keeps_its_transaction) {
  session_->run("BEGIN");
  EXPECT_EQ(reserve("outcome", pay_arguments), "execute");
  Psql rival(database_.uri());
  rival.run("SET lock_timeout = '20ms'");
  rival.run("BEGIN; INSERT INTO payments VALUES ('of the rival', 1)");
  EXPECT_EQ(rival.run(std::string("SELECT outcome FROM idem.reserve(") + pay_arguments + ")"),
            "in_progress");
  EXPECT_EQ(rival.run("SHOW lock_timeout"), "20ms") << "what the session had set stays";
  rival.run("COMMIT");
  session_->run("ROLLBACK");
  EXPECT_EQ(payments(), "1");
  // The lock went with its transaction: the session that held it has nothing left.
  EXPECT_EQ(rival.run(std::string("SELECT outcome FROM idem.reserve(") + pay_arguments + ")"),
            "execute");
}

TEST_F(SqlFace, S02_the_handle_is_the_gateways) {
  const auto& secret = store_->identity().secret;
  for (const auto& [scope, operation, name] :
       {std::array<std::string, 3>{"t", "pay", "k"}, {"tenant ü", "POST /v1/payments", "a'b\"c"}}) {
    std::string sql = "SELECT replace(idem.record_id($$" + scope + "$$, $$" + operation + "$$, $$" +
                      name + "$$)::text, '-', '')";
    EXPECT_EQ(session_->run(sql), to_hex(record_id(secret, scope, operation, name).bytes));
  }
}

TEST_F(SqlFace, S02_an_operation_that_has_or_is_a_former_name_is_the_gateways_to_reserve) {
  ASSERT_TRUE(
      ask_and_wait(*store_, AdoptRoutes{{{{"POST"}, "/v1/charges", "charges", {"payments"}}}}));
  Psql session(database_.uri());
  for (const char* const operation : {"charges", "payments"}) {
    EXPECT_EQ(
        session.try_run(fmt::format("SELECT idem.reserve('t', '{}', 'k', 'body')", operation)),
        "IDM05");
  }
  EXPECT_EQ(session.try_run("SELECT idem.reserve('t', 'refunds', 'k', 'body')"), "");
}

TEST_F(SqlFace, S02_another_operation_under_one_key_is_misuse_where_the_scope_has_one_key) {
  const TestDatabase database;
  IdentitySettings tenant = test_settings();
  tenant.key_scope = "tenant";
  ASSERT_TRUE(open_postgres(database.uri(), tenant, {}).has_value());
  Psql session(database.uri());
  EXPECT_EQ(session.run("SELECT outcome FROM idem.reserve('t', 'charge', 'k', 'x')"), "execute");
  EXPECT_EQ(session.run("SELECT outcome FROM idem.reserve('t', 'refund', 'k', 'x')"), "key_misuse");
}

TEST_F(SqlFace, a_reserve_that_could_not_see_the_winner_is_refused) {
  for (const std::string level : {"REPEATABLE READ", "SERIALIZABLE"}) {
    session_->run("BEGIN ISOLATION LEVEL " + level);
    EXPECT_EQ(session_->try_run(std::string("SELECT idem.reserve(") + pay_arguments + ")"),
              "IDM05");
    session_->run("ROLLBACK");
  }
}

TEST_F(SqlFace, a_call_in_a_session_with_lax_settings_is_durable_all_the_same) {
  session_->run("SET synchronous_commit = off");
  session_->run("BEGIN");
  EXPECT_EQ(reserve("outcome", pay_arguments), "execute");
  EXPECT_EQ(session_->run("SHOW synchronous_commit"), "on");
  session_->run("COMMIT");
}

TEST_F(SqlFace, a_sweep_waits_for_the_disk_where_it_gives_an_answer_and_only_there) {
  EXPECT_EQ(reserve("outcome", pay_arguments), "execute");
  session_->run("UPDATE idem.slots SET locked_until = idem.now()");
  const auto sweep = [&] {
    session_->run(
        "INSERT INTO idem.lease_due_batches SELECT idem.now(), array_agg(id) FROM idem.slots");
    session_->run("BEGIN");
    session_->run("SET LOCAL synchronous_commit = off");
    const std::string became = session_->run("SELECT after FROM idem.sweep(16)");
    const std::string waits = session_->run("SHOW synchronous_commit");
    session_->run("COMMIT");
    return became + ", " + waits;
  };
  EXPECT_EQ(sweep(), "unknown, off");
  session_->run(
      "UPDATE idem.slots SET state = 'pending', request = 'POST', expires_at = idem.now()");
  EXPECT_EQ(sweep(), "completed, on") << "the next asker gets the 408, and writes nothing";
}

TEST_F(SqlFace, V05_the_primary_key_is_scope_operation_and_key_and_the_reserve_uses_it) {
  // The id is the keyed digest of the three, so its uniqueness is theirs.
  EXPECT_EQ(session_->run("SELECT count(*) FROM pg_index WHERE indrelid = 'idem.slots'::regclass"
                          " AND indisprimary AND indisunique"),
            "1");
  // And no other: what an ordinary call changes is in none.
  EXPECT_EQ(session_->run("SELECT count(*) FROM pg_index WHERE indrelid = 'idem.slots'::regclass"),
            "1");
  session_->run("SET enable_seqscan = off");
  session_->run("CREATE TEMP TABLE plan (line text)");
  session_->run(
      "DO $$ DECLARE line text; BEGIN FOR line IN EXECUTE"
      " 'EXPLAIN SELECT * FROM idem.slots t WHERE t.id = ''00000000-0000-0000-0000-000000000000'''"
      " LOOP INSERT INTO plan VALUES (line); END LOOP; END $$");
  EXPECT_NE(session_->run("SELECT string_agg(line, ' ') FROM plan").find("Index"),
            std::string::npos);
}

/// Each ```sql block of the page, as a reader would run it: each that names an attempt with one of
/// its own, and its payment as the only one.
TEST_F(SqlFace, the_pages_examples_run) {
  const std::string page = read_file(std::filesystem::path(IDEM_SOURCE_DIR) / "docs/sql-face.md");
  int blocks = 0;
  int attempts = 0;
  for (std::size_t at = page.find("```sql\n"); at != page.npos; at = page.find("```sql\n", at)) {
    at += 7;
    std::string block = page.substr(at, page.find("```", at) - at);
    ++blocks;
    if (block.find(":'attempt'") != block.npos) {
      const Execute attempt = gateway_reserves(++attempts);
      for (const auto& [name, value] : std::map<std::string, std::string>{
               {":'operation'", "'" + to_hex(attempt.id.bytes) + "'"},
               {":'attempt'", "'" + to_hex(attempt.attempt.token.bytes) + "'"},
               {":fence", std::to_string(attempt.attempt.fence)}}) {
        for (auto found = block.find(name); found != block.npos; found = block.find(name, found)) {
          block.replace(found, name.size(), value);
        }
      }
      session_->run("DELETE FROM payments");
    }
    session_->run(block);
  }
  EXPECT_EQ(blocks, 3);
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(payments(), "1");
  EXPECT_EQ(session_->run("SELECT count(*) FROM idem.outbox"), "1");
  EXPECT_EQ(ask_and_wait(*store_, Find{key(2)}).value()->state, State::completed);
  EXPECT_EQ(ask_and_wait(*store_, Find{key(1)}).value()->state, State::completed);
}

}  // namespace
}  // namespace idem::test
