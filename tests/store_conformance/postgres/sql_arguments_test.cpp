#include "store/postgres/postgres_store.hpp"
#include "store_conformance/harness.hpp"
#include "support/back_off.hpp"

#include <idem/postgres.hpp>

#include <fmt/format.h>
#include <libpq-fe.h>

#include <set>

/// The arguments that the functions of the SQL face accept and store: no field that a replay may
/// not hold.
namespace idem::test {
namespace {

class SqlArguments : public testing::Test {
 protected:
  SqlArguments() : owner_(database_.uri()) {
    auto store = open_postgres(database_.uri(), test_settings(), {});
    if (!store) std::abort();
    store_ = std::move(*store);
  }
  std::string attempt(Psql& session, const std::string& key) {
    return session.run(
        "SELECT format('%L, %s, %L', operation, fence, attempt) FROM"
        " idem.reserve('shop', 'pay', '" +
        key + "', 'x')");
  }
  static std::vector<std::string> split(const std::string& attempt) {
    const auto first = attempt.find(", ");
    const auto second = attempt.find(", ", first + 2);
    return {attempt.substr(0, first), attempt.substr(first + 2, second - first - 2),
            attempt.substr(second + 2)};
  }
  std::string state(const std::string& attempt) {
    return owner_.run("SELECT state FROM idem.find(" + split(attempt).front() + ")");
  }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  Psql owner_;
};

struct Function {
  std::string name;
  std::vector<std::string> rest;  ///< Behind operation, fence and attempt.
  std::set<std::size_t> may_be_null{};
};

const std::vector<Function> of_attempts = {
    {"complete", {"201", "'[]'", "''", "''"}},
    {"release", {"''", "'proven'"}},
    {"mark_unknown", {"''", "'1 s'", "''"}, {4}},
    {"advance", {"'half'"}},
    {"renew", {"'1 s'"}},
    {"enqueue", {"'d'", "'t'", "'{}'", "''", "''", "'application/json'"}},
};

TEST_F(SqlArguments, S17_a_null_in_whatever_place_is_an_argument_that_is_wrong) {
  const TestRole restricted(database_.uri());
  owner_.run("SELECT idem.restrict_to_scope('" + restricted.name() + "', 'shop')");
  Psql service(restricted.uri());
  const auto refuse_nulls = [&](Psql& session, const std::string& name,
                                const std::vector<std::string>& arguments,
                                const std::set<std::size_t>& may_be_null) {
    for (std::size_t null = 0; null < arguments.size(); ++null) {
      std::string list;
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        list += (i == 0 ? "" : ", ") + (i == null ? std::string("NULL") : arguments[i]);
      }
      session.run("BEGIN");
      EXPECT_EQ(session.try_run("SELECT idem." + name + "(" + list + ")"),
                may_be_null.contains(null) ? "" : "IDM05")
          << name << "(" << list << ")";
      session.run("ROLLBACK");
    }
  };
  for (Psql* session : {&owner_, &service}) {
    const std::string current = attempt(*session, session == &owner_ ? "a" : "b");
    for (const Function& function : of_attempts) {
      std::vector<std::string> arguments = split(current);
      arguments.insert(arguments.end(), function.rest.begin(), function.rest.end());
      for (const std::string prefix : {"", "try_"}) {
        refuse_nulls(*session, prefix + function.name, arguments, function.may_be_null);
      }
    }
    refuse_nulls(*session, "reserve",
                 {"'shop'", "'pay'", "'k'", "'x'", "'1 s'", "'1 s'", "'1 s'", "'unknown'", "true",
                  "gen_random_uuid()", "'me'"},
                 {});
    refuse_nulls(*session, "record_id", {"'shop'", "'pay'", "'k'"}, {});
    refuse_nulls(*session, "find", {split(current).front()}, {});
  }
  refuse_nulls(owner_, "restrict_to_scope", {"'" + restricted.name() + "'", "'shop'"}, {1});
  refuse_nulls(owner_, "lift_restriction", {"'" + restricted.name() + "'"}, {});
  // None was forgotten: what a service can call without more rights is named above, or only reads.
  EXPECT_EQ(owner_.run("SELECT string_agg(DISTINCT replace(p.proname, 'try_', ''), ' ' ORDER BY"
                       " replace(p.proname, 'try_', '')) FROM pg_proc p"
                       " WHERE p.pronamespace = 'idem'::regnamespace AND p.proname LIKE 'try\\_%'"
                       " AND p.proname NOT LIKE '%\\_in\\_scope' AND p.proname NOT LIKE"
                       " '%\\_anywhere'"),
            "advance complete enqueue mark_unknown owner release renew");
}

TEST_F(SqlArguments, S17_a_wrong_length_attempt_or_list_is_refused_by_the_same_code) {
  const std::string current = attempt(owner_, "a");
  const auto& parts = split(current);
  const std::string nobody = parts[0] + ", " + parts[1] + ", '" +
                             std::string("00000000-0000-0000-0000-000000000000") + "'";
  std::vector<std::string> wrong = {
      "reserve('shop', 'pay', 'k', 'x', attempt => '00000000-0000-0000-0000-000000000000')",
      "reserve('', 'pay', 'k', 'x')",
      "reserve('shop', '', 'k', 'x')",
      "reserve('shop', 'pay', '', 'x')",
      "reserve(repeat('s', 256), 'pay', 'k', 'x')",
      "reserve('shop', 'pay', 'k', 'x', owner => repeat('o', 256))",
      "reserve('shop', 'pay', 'k', 'x', lease => '0')",
      "reserve('shop', 'pay', 'k', 'x', retention => '-1 s')",
      "reserve('shop', 'pay', 'k', 'x', tombstone => '-1 s')",
      "reserve('shop', 'pay', 'k', 'x', lease => '170000000 years')",
      "renew(" + current + ", '0')",
      "renew(" + current + ", '170000000 years')",
      "mark_unknown(" + current + ", '', '-1 s')",
      "advance(" + current + ", repeat('p', 8193))",
      "release(" + current + ", repeat('e', 8193))",
      "complete(" + current + ", 201, '[]', '', repeat('r', 8193))",
      "enqueue(" + current + ", '', 't', '{}')",
      "enqueue(" + current + ", 'd', '', '{}')",
      "enqueue(" + current + ", 'd', 't', repeat('x', 1048577))",
      "try_owner('finish', " + current + ", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
  };
  for (const Function& function : of_attempts) {
    std::string list = nobody;
    for (const auto& one : function.rest) list += ", " + one;
    wrong.push_back(function.name + "(" + list + ")");
  }
  for (const std::string headers : {"{}", "null", "\"X-A: b\"", "1", "[1]", "[[\"X-A\"]]",
                                    "[[\"X-A\", null]]", "[[null, \"a\"]]", "[[\"X A\", \"b\"]]",
                                    "[[\"X-A\", \"b\\nX-B: c\"]]", "[{\"X-A\": \"b\"}]"}) {
    wrong.push_back("complete(" + current + ", 201, '" + headers + "')");
  }
  for (const int status : {-1, 0, 99, 100, 101, 199, 600, 999}) {
    wrong.push_back(fmt::format("complete({}, {})", current, status));
  }
  for (const std::string& call : wrong) {
    EXPECT_EQ(owner_.try_run("SELECT idem." + call), "IDM05") << call;
  }
  EXPECT_EQ(state(current), "in_progress");
}

TEST_F(SqlArguments, S17_T08_an_attempt_that_was_released_or_is_unknown_sends_nothing_more) {
  for (const std::string ending : {"release", "mark_unknown"}) {
    const std::string ended = attempt(owner_, ending);
    owner_.run("SELECT idem." + ending + "(" + ended + ")");
    EXPECT_EQ(owner_.try_run("SELECT idem.enqueue(" + ended + ", 'd', 't', '{}')"), "IDM01")
        << ending;
    EXPECT_EQ(owner_.run("SELECT idem.try_enqueue(" + ended + ", 'd', 't', '{}') IS NULL"), "t");
  }
  EXPECT_EQ(owner_.run("SELECT count(*) FROM idem.outbox"), "0");
}

// It may run again, and would send its message once more.
TEST_F(SqlArguments, S17_T08_a_transaction_that_sent_a_message_cannot_release) {
  for (const std::string ending : {"release", "mark_unknown"}) {
    const std::string current = attempt(owner_, ending);
    const std::string other = attempt(owner_, "other-" + ending);
    owner_.run("BEGIN");
    owner_.run("SELECT idem.enqueue(" + current + ", 'd', 't', '{}')");
    owner_.run("SAVEPOINT here");
    EXPECT_EQ(owner_.try_run("SELECT idem." + ending + "(" + current + ")"), "IDM05");
    owner_.run("ROLLBACK TO here");
    owner_.run("SELECT idem." + ending + "(" + other + ")");
    owner_.run("ROLLBACK");
    EXPECT_EQ(state(current), "in_progress");
    owner_.run("SELECT idem." + ending + "(" + current + ")");
    EXPECT_NE(state(current), "in_progress");
  }
  EXPECT_EQ(owner_.run("SELECT count(*) FROM idem.outbox"), "0");
}

// ---- what is stored ----

TEST_F(SqlArguments, S14_fields_that_are_never_stored_are_left_out_as_by_a_gateway) {
  const std::string current = attempt(owner_, "a");
  owner_.run(
      "SELECT idem.complete(" + current +
      ", 201, '[[\"Content-Type\", \"text/plain\"], [\"Set-Cookie\", \"a=b\"],"
      " [\"set-cookie2\", \"a=b\"], [\"WWW-Authenticate\", \"x\"], [\"Authorization\", \"x\"],"
      " [\"Proxy-Authenticate\", \"x\"], [\"Authentication-Info\", \"x\"],"
      " [\"Alt-Svc\", \"x\"], [\"Clear-Site-Data\", \"x\"], [\"Keep-Alive\", \"x\"],"
      " [\"Connection\", \"close, X-Hop\"], [\"X-Hop\", \"x\"], [\"Te\", \"x\"],"
      " [\"CONNECTION\", \" X-First ,\\tX-Last\\t\"], [\"X-First\", \"x\"], [\"X-Last\", \"x\"],"
      " [\"Trailer\", \"x\"], [\"Transfer-Encoding\", \"chunked\"], [\"Upgrade\", \"x\"],"
      " [\"Via\", \"x\"], [\"Content-Length\", \"9\"], [\"IDEM-Outcome\", \"x\"],"
      " [\"Idempotent-Replayed\", \"x\"], [\"Idempotency-Expires\", \"x\"],"
      " [\"idempotency-outcome\", \"x\"], [\"X-Kept\", \"yes\"]]', 'paid')");
  EXPECT_EQ(owner_.run("SELECT response_headers FROM idem.find(" + split(current).front() + ")"),
            "[[\"Content-Type\", \"text/plain\"], [\"X-Kept\", \"yes\"]]");
}

TEST_F(SqlArguments, S14_no_head_of_bytes_brings_them_in) {
  const std::string current = attempt(owner_, "a");
  const TestRole restricted(database_.uri());
  owner_.run("SELECT idem.restrict_to_scope('" + restricted.name() + "', 'shop')");
  Psql service(restricted.uri());
  const std::string kept = "'\\x01c90001'::bytea";  // 201, with its body.
  const auto field = [](const std::string& name) {
    return " || idem.framed('" + name + "') || idem.framed('x')";
  };
  std::vector<std::string> wrong = {"'\\x'",
                                    "'\\x01'",
                                    "'\\x02c90001'",
                                    "'\\x01640001'",
                                    "'\\x01580201'",
                                    "'\\x01c90007'",
                                    "NULL",
                                    kept + " || '\\xff'",
                                    kept + " || '\\xffffff00'",
                                    kept + " || idem.framed(repeat('n', 17000)::bytea)"};
  for (const std::string name : {"Set-Cookie", "Idem-Fence", "Proxy-X", "connection"}) {
    wrong.push_back(kept + field("X-A") + field(name));
  }
  for (const std::string byte : {"0d", "0a", "00"}) {
    for (const std::string& value : {byte, byte + "61", "61" + byte + "61", "61" + byte}) {
      wrong.push_back(kept + field("X-A") + " || idem.framed('X-B') || idem.framed('\\x" + value +
                      "')");
    }
  }
  for (Psql* session : {&owner_, &service}) {
    for (const std::string& head : wrong) {
      EXPECT_EQ(session->try_run("SELECT idem.try_owner('complete', " + current + ", NULL, NULL, " +
                                 head + ", 'body', '', NULL, NULL, NULL)"),
                "IDM05")
          << head;
    }
  }
  EXPECT_EQ(service.run("SELECT (idem.try_owner('complete', " + current + ", NULL, NULL, " + kept +
                        field("X-A") + ", 'body', '', NULL, NULL, NULL)).verdict"),
            "done");
}

TEST_F(SqlArguments, S14_an_answer_has_a_bound_that_no_session_moves) {
  const std::string current = attempt(owner_, "a");
  const auto complete = [&](int body, int field, int fields = 1) {
    return owner_.try_run(fmt::format(
        "SELECT idem.complete({}, 200, (SELECT jsonb_agg(jsonb_build_array('X-A', repeat('v', {})))"
        " FROM generate_series(1, {})), repeat('b', {})::bytea)",
        current, field, fields, body));
  };
  EXPECT_EQ(complete(1'048'577, 1), "IDM05");
  EXPECT_EQ(complete(1, 16'384), "IDM05");
  EXPECT_EQ(complete(1, 1, 101), "IDM05");
  EXPECT_EQ(state(current), "in_progress");
  EXPECT_EQ(complete(1'048'576, 16'000), "");
  EXPECT_EQ(state(current), "completed");
}

TEST_F(SqlArguments, S14_a_service_on_a_connection_of_its_own_stores_none_of_it_either) {
  Reserve verb = a_reserve(1);
  verb.generation = store_->identity().generation;
  const auto run = std::get<Execute>(ask_and_wait(*store_, verb).value());
  pg_conn* const connection = PQconnectdb(database_.uri().c_str());
  StoredResponse response = answer(201, "paid");
  for (const char byte : {'\r', '\n', '\0'}) {
    response.headers = {{"X-A", std::string("a") + byte + "X-B: b"}};
    PQclear(PQexec(connection, "BEGIN"));
    const auto refused = complete_on(connection, run.id, run.attempt, response, "");
    ASSERT_FALSE(refused.has_value()) << static_cast<int>(byte);
    EXPECT_EQ(refused.error().sqlstate, "IDM05") << refused.error().message;
    PQclear(PQexec(connection, "ROLLBACK"));
  }
  PQclear(PQexec(connection, "BEGIN"));
  response.headers = {{"Set-Cookie", "a=b"}, {"X-Kept", "yes"}, {"Idem-Fence", "1"}};
  const auto done = complete_on(connection, run.id, run.attempt, response, "");
  EXPECT_TRUE(done.has_value()) << done.error().message;
  PQclear(PQexec(connection, "COMMIT"));
  PQfinish(connection);
  const auto record = ask_and_wait(*store_, Find{key(1)});
  EXPECT_EQ(record->value().response->headers, (std::vector<Field>{{"X-Kept", "yes"}}));
}

// ---- beside what else an operator sets up ----

TEST_F(SqlArguments, S02_no_session_keeps_a_commit_from_the_standbys) {
  PostgresServer server;
  ASSERT_TRUE(open_postgres(server.uri(), test_settings(), {}).has_value());
  const auto after = [&](Psql& session, const std::string& setting, const std::string& call) {
    session.run("BEGIN");
    session.run("SET LOCAL synchronous_commit = " + setting);
    session.run("SELECT " + call + " FROM idem.slots s");
    const std::string became = session.run("SHOW synchronous_commit");
    session.run("ROLLBACK");  // There is no standby: a commit would wait for ever.
    return became;
  };
  const std::string reserve = "idem.reserve('shop', 'pay', 'other', 'x')";
  {
    Psql session(server.uri());
    session.run("SELECT idem.reserve('shop', 'pay', 'k', 'x')");
    EXPECT_EQ(after(session, "local", reserve), "local") << "there is none to wait for";
    session.run("ALTER SYSTEM SET synchronous_standby_names = 'other'");
    session.run("SELECT pg_reload_conf()");
  }
  while (Psql(server.uri()).run("SHOW synchronous_standby_names") != "other") {
    back_off();
  }
  Psql session(server.uri());
  const std::string answer = "'\\x01c90001'::bytea, ''::bytea, ''";
  const std::vector<std::string> calls = {
      reserve,
      "idem.reserve_many(s.generation, 1, ARRAY[gen_random_uuid()], ARRAY[s.scope],"
      " ARRAY[s.operation], ARRAY[s.fingerprint], ARRAY[gen_random_uuid()], ARRAY[s.owner],"
      " '{60000}', '{unknown}', '{t}', '{60000}', '{60000}')",
      "idem.owners_many('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',"
      " '{}', '{}')",
      "idem.complete_new(pg_current_xact_id()::text, 0, s.generation, gen_random_uuid(),"
      " s.scope, s.operation, s.fingerprint, s.fence, gen_random_uuid(), s.owner,"
      " s.lease_policy, s.dispatched, s.retention, s.tombstone, " +
          answer + ")",
      "idem.complete_admitted(pg_current_xact_id()::text, s.id, s.fence, s.token, " + answer + ")",
  };
  for (const std::string& call : calls) {
    for (const std::string setting : {"off", "local"}) {
      EXPECT_EQ(after(session, setting, call), "on") << setting << ": " << call;
    }
  }
}

TEST_F(SqlArguments, S15_a_publication_of_all_tables_stops_nothing) {
  owner_.run("CREATE PUBLICATION everything FOR ALL TABLES");
  const auto reserve = [&](int number, Millis lease_length) {
    Reserve verb = a_reserve(number);
    verb.generation = store_->identity().generation;
    verb.lease = lease_length;
    verb.retention = 1ms;
    verb.tombstone = 1ms;
    return std::get<Execute>(ask_and_wait(*store_, verb).value());
  };
  const auto run = reserve(1, 60s);
  ASSERT_TRUE(ask_and_wait(*store_, a_complete(run, answer(200, std::string(5'000, 'x')))));
  reserve(2, 1ms);
  owner_.run("SELECT idem.make_day((now() AT TIME ZONE 'UTC')::date + 40)");
  owner_.run("INSERT INTO idem.answers SELECT now() + interval '40 days', 1, '', ''");
  // Each comes to what is due by now, whenever that is.
  while (owner_.run("SELECT count(*) FROM idem.slots WHERE state <> 'unknown'") != "0") {
    const auto swept = ask_and_wait(*store_, Sweep{100});
    ASSERT_TRUE(swept.has_value()) << swept.error().detail;
    const auto reaped = ask_and_wait(*store_, Reap{100});
    ASSERT_TRUE(reaped.has_value()) << reaped.error().detail;
  }
  owner_.run("SELECT idem.drop_old_days(); SELECT idem.fold_usage(10)");
  for (const std::string table : {"lease_due_batches", "expiry_due_batches", "answers"}) {
    EXPECT_EQ(owner_.try_run("DELETE FROM idem." + table), "") << table;
  }
  EXPECT_EQ(owner_.run("SELECT coalesce(string_agg(c.relname, ', '), '') FROM pg_class c"
                       " WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN ('r', 'p')"
                       " AND c.relreplident <> 'f' AND NOT (c.relreplident = 'd' AND EXISTS ("
                       " SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))"),
            "");
}

}  // namespace
}  // namespace idem::test
