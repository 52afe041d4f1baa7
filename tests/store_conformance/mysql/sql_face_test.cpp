#include "core/bytes/digests.hpp"
#include "core/bytes/hex.hpp"
#include "store_conformance/mysql/asking.hpp"

#include <idem/fingerprint.hpp>

#include <barrier>
#include <random>
#include <thread>

/// The procedures that a service calls in its own transaction (protocol.md §17), on MariaDB.
namespace idem::test {
namespace {

constexpr unsigned stale = 31001;
constexpr unsigned settled = 31002;
constexpr unsigned wrong_argument = 31005;
constexpr unsigned damaged_record = 31008;

class MysqlFace : public testing::Test {
 protected:
  MysqlFace() {
    store_ = open_by_url(database_.url());
    session_ = std::make_unique<MysqlSession>(database_.url());
    session_->run("CREATE TABLE payments (id VARCHAR(100) PRIMARY KEY, amount INT) ENGINE=InnoDB");
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
  static std::string completing(const Execute& run, const std::string& prefix = "idem_complete") {
    return fmt::format("CALL {}({}, 201, '[[\"X-A\", \"b\"]]', 'paid', 'ref')", prefix, args(run));
  }
  std::string payments() {
    return MysqlSession(database_.url()).run("SELECT count(*) FROM payments");
  }
  std::optional<Record> record(int key_number) {
    return ask_and_wait(*store_, Find{key(key_number)}).value();
  }

  TestMysqlDatabase database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<MysqlSession> session_;
};

constexpr const char* begin = "START TRANSACTION; INSERT INTO payments VALUES ('p', 5)";

TEST_F(MysqlFace, S14_the_trace_beside_a_gateways_answer_is_not_for_services) {
  const Execute run = gateway_reserves(1);
  StoredResponse stored = answer();
  stored.headers.push_back(
      {"Idem-Trace", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"});
  ASSERT_TRUE(ask_and_wait(*store_, a_complete(run, stored)));
  EXPECT_EQ(record(1)->response->headers, stored.headers) << "gateways read it";
  EXPECT_EQ(session_->run("SELECT idem_headers(answer_head) FROM idem_slots"),
            R"([["Content-Type", "text/plain"], ["Location", "/payments/1"]])");
}

TEST_F(MysqlFace, S17_T57_rows_and_completion_are_one_commit) {
  const Execute attempt = gateway_reserves(1);
  session_->run(begin);
  session_->run(completing(attempt));
  session_->run("ROLLBACK");
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(record(1)->state, State::in_progress);
  session_->run(begin);
  session_->run(completing(attempt));
  session_->run("COMMIT");
  EXPECT_EQ(record(1)->response->body, "paid");
  EXPECT_EQ(record(1)->response->headers, (std::vector<Field>{{"X-A", "b"}}));
  EXPECT_EQ(record(1)->upstream_reference, "ref");
  EXPECT_EQ(payments(), "1");
}

TEST_F(MysqlFace, S17_a_late_owner_raises_and_its_rows_are_gone_also_where_nobody_looks) {
  const Execute attempt = gateway_reserves(1);
  Execute other = attempt;
  other.attempt.fence += 1;
  for (const std::string call :
       {"complete({}, 201, '[]', '', '')", "advance({}, 'charged')", "renew({}, 1000)",
        "release({}, '', 'proven')", "mark_unknown({}, '', NULL, '')",
        "enqueue({}, 'd', 't', 'p', '', '', 'text/plain')"}) {
    session_->run(begin);
    EXPECT_EQ(session_->try_run("CALL idem_" + fmt::format(fmt::runtime(call), args(other))), stale)
        << call;
    session_->run("COMMIT");
    EXPECT_EQ(payments(), "0") << call;
    EXPECT_EQ(session_->run("SELECT @@innodb_lock_wait_timeout"), "50") << call;
  }
  session_->run(begin);
  session_->run(completing(attempt));
  session_->run("COMMIT");
  session_->run("START TRANSACTION; INSERT INTO payments VALUES ('second', 5)");
  EXPECT_EQ(session_->try_run(completing(attempt)), settled);
  session_->run("COMMIT");
  EXPECT_EQ(payments(), "1");
}

TEST_F(MysqlFace, S17_a_try_returns_a_verdict_and_leaves_the_transaction) {
  const Execute attempt = gateway_reserves(1);
  Execute other = attempt;
  other.attempt.token = token(9);
  session_->run(begin);
  EXPECT_EQ(session_->run(completing(other, "idem_try_complete")), "stale");
  EXPECT_EQ(session_->run(completing(attempt, "idem_try_complete")), "done");
  EXPECT_EQ(session_->run(completing(attempt, "idem_try_complete")), "settled");
  session_->run("COMMIT");
  EXPECT_EQ(payments(), "1");
}

TEST_F(MysqlFace, S17_outside_of_a_transaction_nothing_is_done) {
  const Execute attempt = gateway_reserves(1);
  EXPECT_EQ(session_->try_run(completing(attempt)), wrong_argument);
  EXPECT_EQ(session_->try_run("CALL idem_reserve('s', 'o', 'k', 'r')"), wrong_argument);
  EXPECT_EQ(record(1)->state, State::in_progress);
  session_->run("SET autocommit = 0");
  session_->run(completing(attempt));
  session_->run("ROLLBACK");
  EXPECT_EQ(record(1)->state, State::in_progress);
}

TEST_F(MysqlFace, S17_wrong_arguments_are_refused_by_number_and_roll_back) {
  const Execute attempt = gateway_reserves(1);
  const std::string ours = args(attempt);
  const std::string id = "'" + to_hex(attempt.id.bytes) + "'";
  for (const std::string& call : {
           "complete(" + ours + ", 99, '[]', '', '')",
           "complete(" + ours + ", 200, '{}', '', '')",
           "complete(" + ours + ", 200, NULL, '', '')",
           "complete(" + ours + ", 200, '[]', NULL, '')",
           "complete(" + ours + ", 204, '[]', 'x', '')",
           "complete(" + ours + ", 200, '[]', '', NULL)",
           "complete(" + ours + ", 200, '[[\"A\", \"b\\\\nc\"]]', '', '')",
           "complete(" + ours + ", 200, '[[\"A b\", \"c\"]]', '', '')",
           "complete(" + ours + ", 200, '[[\"A\"]]', '', '')",
           "complete(" + ours + ", 200, '[]', REPEAT('x', 1048577), '')",
           "complete(" + ours + ", 200, '[]', '', REPEAT('x', 9000))",
           "complete('no handle', 1, " + id + ", 200, '[]', '', '')",
           "complete(" + id + ", NULL, " + id + ", 200, '[]', '', '')",
           "complete(" + id + ", 1, REPEAT('0', 32), 200, '[]', '', '')",
           "release(" + ours + ", '', 'perhaps')",
           "release(" + ours + ", NULL, 'proven')",
           "renew(" + ours + ", 0)",
           "mark_unknown(" + ours + ", '', -1, '')",
           "advance(" + ours + ", NULL)",
           "enqueue(" + ours + ", '', 't', 'p', '', '', '')",
           "enqueue(" + ours + ", 'd', 't', NULL, '', '', '')",
           std::string("reserve('', 'o', 'k', 'r')"),
           std::string("reserve('s', 'o', 'k', NULL)"),
           std::string("reserve('s', 'o', REPEAT('k', 256), 'r')"),
           std::string("reserve_with('s', 'o', 'k', 'r', 0, 1, 1, 'unknown', 1, NULL, '')"),
           std::string("reserve_with('s', 'o', 'k', 'r', 1, 1, 1, 'perhaps', 1, NULL, '')"),
           std::string("reserve_with('s', 'o', 'k', 'r', 1, 1, 1, 'unknown', 1, 'x', '')"),
       }) {
    session_->run(begin);
    EXPECT_EQ(session_->try_run("CALL idem_" + call), wrong_argument) << call;
    session_->run("COMMIT");
    EXPECT_EQ(payments(), "0") << call;
  }
  EXPECT_EQ(record(1)->state, State::in_progress);
}

TEST_F(MysqlFace, S02_the_handle_is_the_gateways) {
  const auto identity = store_->identity();
  for (const auto& [scope, operation, name] : std::vector<std::array<std::string, 3>>{
           {"tenant-1", "POST /p", "k"},
           {"Grüße", "日本", "a b"},
           {std::string(255, 's'), "o", std::string(255, 'k')}}) {
    const RecordId made = record_id(identity.secret, scope, operation, name);
    const auto sql = fmt::format("SELECT idem_record_id(_utf8mb4 x'{}', _utf8mb4 x'{}', '{}')",
                                 hex_of(scope), hex_of(operation), name);
    EXPECT_EQ(session_->run(sql), to_hex(made.bytes)) << scope;
  }
}

TEST_F(MysqlFace, S02_an_operation_with_a_former_name_is_reserved_by_gateways_only) {
  AdoptRoutes verb;
  verb.routes = {{{"POST"}, "/v2/pay", "pay", {"POST /v1/pay"}}, {{"POST"}, "/quote", "quote", {}}};
  ASSERT_TRUE(ask_and_wait(*store_, verb).has_value());
  for (const std::string operation : {"pay", "POST /v1/pay"}) {
    session_->run("START TRANSACTION");
    EXPECT_EQ(session_->try_run("CALL idem_reserve('s', '" + operation + "', 'k', 'r')"),
              wrong_argument);
  }
  session_->run("START TRANSACTION");
  EXPECT_EQ(session_->run("CALL idem_reserve('s', 'quote', 'k', 'r')"), "execute");
  session_->run("COMMIT");
}

TEST_F(MysqlFace, S17_a_hostile_session_changes_nothing) {
  const Execute attempt = gateway_reserves(1);
  session_->run(
      "SET SESSION sql_mode = "
      "'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH',"
      " time_zone = '-11:00', timestamp = 1, sql_select_limit = 0, max_error_count = 0,"
      " collation_connection = utf8mb4_general_ci, sql_safe_updates = 1, unique_checks = 0,"
      " character_set_client = latin1, innodb_lock_wait_timeout = 7");
  session_->run("CREATE TEMPORARY TABLE idem_slots (id INT)");
  session_->run("CREATE TEMPORARY TABLE idem_identity (one INT, generation INT)");
  session_->run("CREATE TEMPORARY TABLE idem_fence (one INT, highest BIGINT UNSIGNED)");
  session_->run("INSERT INTO idem_fence VALUES (1, 9223372036854775000)");
  session_->run("START TRANSACTION");
  session_->run(completing(attempt));
  session_->run("COMMIT");
  session_->run("START TRANSACTION");
  EXPECT_EQ(session_->run("CALL idem_reserve('s', 'o', 'k', 'r')"), "execute");
  session_->run("COMMIT");
  session_->run("SET sql_select_limit = DEFAULT");
  EXPECT_EQ(session_->run("SELECT @@innodb_lock_wait_timeout"), "7");
  EXPECT_EQ(record(1)->response->body, "paid");
  MysqlSession other(database_.url());
  EXPECT_EQ(other.run("SELECT MAX(fence) < 9000000000000000000 AND MIN(created_at) > 1700000000000"
                      " FROM idem_slots"),
            "1");
  EXPECT_EQ(other.run("SELECT SUM(NOT idem_is_sound(id)) FROM idem_slots"), "0");
}

TEST_F(MysqlFace, S17_a_role_with_the_procedures_alone_reads_and_writes_no_table) {
  const std::string user = "u_" + database_.name() + "@'127.0.0.1'";
  session_->run("CREATE USER " + user);
  for (const char* const name : {"idem_reserve", "idem_complete", "idem_find"}) {
    session_->run(
        fmt::format("GRANT EXECUTE ON PROCEDURE {}.{} TO {}", database_.name(), name, user));
  }
  // As root the test may act with the rights of a definer: what the role could do, it can do.
  session_->run(fmt::format(
      "CREATE DEFINER = {} PROCEDURE as_role(IN what INT) SQL SECURITY DEFINER"
      " BEGIN IF what = 1 THEN SELECT own_secret FROM idem_identity; ELSEIF what = 2 THEN"
      " UPDATE idem_slots SET state = 3; ELSEIF what = 3 THEN CALL idem_seal(x'00');"
      " ELSE CALL idem_reserve('s', 'o', 'k', 'r'); END IF; END",
      user));
  session_->run(fmt::format("GRANT EXECUTE ON PROCEDURE {}.as_role TO {}", database_.name(), user));
  EXPECT_NE(session_->try_run("CALL as_role(1)"), 0U);
  EXPECT_NE(session_->try_run("CALL as_role(2)"), 0U);
  EXPECT_NE(session_->try_run("CALL as_role(3)"), 0U);
  session_->run("START TRANSACTION");
  EXPECT_EQ(session_->run("CALL as_role(4)"), "execute");
  session_->run("COMMIT");
  session_->run("DROP USER " + user);
}

TEST_F(MysqlFace, S05_T01_of_two_reserves_at_once_one_executes) {
  for (int round = 0; round < 20; ++round) {
    std::barrier together(2);
    std::string outcomes[2];
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        MysqlSession mine(database_.url());
        mine.run("START TRANSACTION");
        together.arrive_and_wait();
        const auto reserve = fmt::format("CALL idem_reserve('s', 'o', 'k{}', 'r')", round);
        // From MariaDB 11.6 on the server may have rolled back, as at a deadlock.
        while (const unsigned error = mine.try_run(reserve, outcomes[i])) {
          ASSERT_EQ(error, 1020U);
          mine.run("START TRANSACTION");
        }
        mine.run("COMMIT");
      });
    }
    for (auto& thread : threads) thread.join();
    std::ranges::sort(outcomes);
    EXPECT_EQ(outcomes[0], "execute") << round;
    EXPECT_EQ(outcomes[1], "in_progress") << round;
  }
}

TEST_F(MysqlFace, S22_a_damaged_record_runs_nothing_and_completes_nothing) {
  const Execute attempt = gateway_reserves(1);
  session_->run("UPDATE idem_slots SET fence = fence + 1 WHERE id = " + literal(key(1)));
  session_->run(begin);
  EXPECT_EQ(session_->try_run(completing(attempt)), damaged_record);
  session_->run("COMMIT");
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(session_->try_run(fmt::format("CALL idem_find('{}')", to_hex(key(1).bytes))),
            damaged_record);
}

TEST_F(MysqlFace,
       S18_a_message_leaves_with_its_commit_and_an_operation_that_sent_one_ends_with_it) {
  const Execute attempt = gateway_reserves(1);
  const std::string enqueue =
      "CALL idem_enqueue(" + args(attempt) + ", 'd', 't', 'text', 'a', '1', 'text/plain')";
  session_->run("START TRANSACTION");
  EXPECT_EQ(session_->run(enqueue).size(), 32U);
  EXPECT_EQ(session_->try_run("CALL idem_release(" + args(attempt) + ", '', 'proven')"),
            wrong_argument);
  EXPECT_EQ(session_->run("SELECT count(*) FROM idem_outbox"), "0");
  session_->run("START TRANSACTION");
  session_->run(enqueue);
  session_->run(completing(attempt));
  session_->run("COMMIT");
  EXPECT_EQ(session_->run("SELECT count(*) FROM idem_outbox"), "1");
  session_->run("START TRANSACTION");
  EXPECT_EQ(session_->try_run(enqueue), settled);
}

// ---- the procedures make the steps of src/core/transitions ----

class Both {
 public:
  Both()
      : plain_(open_by_url_with_clock()),
        mysql_(open_by_url(database_.url())),
        session_(database_.url()) {
    session_.run(
        "CREATE TABLE test_clock (ms BIGINT) ENGINE=InnoDB;"
        "INSERT INTO test_clock VALUES (0);"
        "CREATE OR REPLACE FUNCTION idem_now() RETURNS BIGINT NOT DETERMINISTIC READS SQL DATA"
        " RETURN (SELECT ms FROM test_clock)");
    clock_.on_advance([this] { set_clock(); });
    set_clock();
  }

  void step(std::mt19937& random) {
    const auto pick = [&](int most) {
      return static_cast<int>(random() % static_cast<unsigned>(most));
    };
    switch (pick(10)) {
      case 0:
      case 1:
      case 2:
        return reserve(pick(3), pick(8) == 0, 1 + pick(4), pick);
      case 3:
        clock_.advance(Millis(pick(2) == 0 ? 500 : 40'000));
        return;
      case 4:
        return maintain(pick(2) == 0);
      default:
        return owner(pick(3), 3 + pick(5), pick);
    }
  }

  void expect_equal(const std::string& after) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(seen(*mysql_, i), seen(*plain_, i)) << after;
    }
  }

 private:
  std::unique_ptr<Store> open_by_url_with_clock() {
    return idem::test::open_by_url("memory:", clock_);
  }
  void set_clock() {
    session_.run("UPDATE test_clock SET ms = " +
                 std::to_string(clock_.now().time_since_epoch().count()));
  }
  RecordId id_of(int i) {
    return *parse_handle(session_.run(fmt::format("SELECT idem_record_id('s', 'o', 'k{}')", i)));
  }

  /// Fences come from other counters, names of rules from other secrets.
  std::string seen(Store& store, int i) {
    auto record = ask_and_wait(store, Find{id_of(i)}).value();
    if (record) {
      if (record->attempt) record->attempt->fence = 1;
      record->generation = 1;
    }
    std::string text = describe(record);
    const auto log = ask_and_wait(store, ReadEvidence{id_of(i)});
    for (const EvidenceEntry& line : *log) {
      text +=
          fmt::format("\n{} {} {} {} {}", line.source, line.evidence, static_cast<int>(line.before),
                      static_cast<int>(line.after), line.applied);
    }
    return text;
  }

  void reserve(int i, bool is_other, int token_number, const auto& pick) {
    const std::string request = is_other ? "other" : "request";
    static constexpr const char* policies[] = {"unknown", "resume", "rerun"};
    Reserve verb = a_reserve(1, token_number);
    verb.id = id_of(i);
    verb.scope = "s";
    verb.operation = "o";
    std::string digested("\1\0\0\0\0\0\0\0o", 9);
    verb.fingerprints = {Fingerprint{0, sha256(digested + request)}};
    verb.owner = "w";
    const int policy = pick(3);
    verb.lease_policy = static_cast<LeasePolicy>(policy + 1);
    verb.dispatched = pick(3) != 0;
    verb.lease = 1s;
    verb.retention = 60s;
    verb.tombstone = 120s;
    verb.generation = plain_->identity().generation;
    const auto wanted = ask_and_wait(*plain_, verb).value();
    session_.run("START TRANSACTION");
    const std::string got = session_.run(fmt::format(
        "CALL idem_reserve_with('s', 'o', 'k{}', '{}', 1000, 60000, 120000, '{}', {}, '{}', 'w')",
        i, request, policies[policy], verb.dispatched ? 1 : 0, to_hex(verb.token.bytes)));
    session_.run("COMMIT");
    static constexpr const char* names[] = {"execute", "replay",  "in_progress", "key_misuse",
                                            "unknown", "expired", "pending"};
    EXPECT_EQ(got, names[wanted.index()]) << describe(wanted);
    if (const auto* execute = std::get_if<Execute>(&wanted)) {
      const Named named{i, execute->attempt.token};
      fences_[named] = execute->attempt.fence;
      mysql_fences_[named] = session_.run(
          fmt::format("SELECT fence FROM idem_slots WHERE id = x'{}'", to_hex(verb.id.bytes)));
    }
  }

  void owner(int i, int what, const auto& pick) {
    const Token of = token(1 + pick(4));
    const RecordId id = id_of(i);
    const auto known = fences_.find({i, of});
    const bool by_token = pick(4) == 0 || known == fences_.end();
    const AttemptRef plain{by_token ? std::nullopt : std::optional(known->second), of};
    const std::string args = fmt::format("'{}', {}, '{}'", to_hex(id.bytes),
                                         by_token ? "0" : mysql_fences_[{i, of}], to_hex(of.bytes));
    std::string call;
    StoreCall verb = Renew{id, plain, 1s};
    switch (what) {
      case 3:
        verb = Complete{id, plain, {pick(2) == 0 ? 201 : 500, {{"A", "b"}}, "body", true}, "ref"};
        call = fmt::format("complete({}, {}, '[[\"A\", \"b\"]]', 'body', 'ref')", args,
                           std::get<Complete>(verb).response.status);
        break;
      case 4:
        verb = Release{id, plain, ReleaseBasis::declared, "why", Millis(0)};
        call = fmt::format("release({}, 'why', 'declared')", args);
        break;
      case 5:
        verb = MarkUnknown{id, plain, "lost", 5s, "ref2"};
        call = fmt::format("mark_unknown({}, 'lost', 5000, 'ref2')", args);
        break;
      case 6:
        verb = Advance{id, plain, "point"};
        call = fmt::format("advance({}, 'point')", args);
        break;
      default:
        call = fmt::format("renew({}, 1000)", args);
    }
    const OwnerReply wanted = std::visit(
        [&]<class Verb>(Verb& one) -> OwnerReply {
          if constexpr (std::is_same_v<typename Verb::Reply, OwnerReply>) {
            return ask_and_wait(*plain_, one).value();
          }
          return {};
        },
        verb);
    session_.run("START TRANSACTION");
    const std::string got = session_.run("CALL idem_try_" + call);
    session_.run("COMMIT");
    static constexpr const char* verdicts[] = {"done", "settled", "stale"};
    EXPECT_EQ(got, verdicts[static_cast<int>(wanted.verdict)]) << call;
  }

  void maintain(bool sweeps) {
    for (Store* const store : {plain_.get(), mysql_.get()}) {
      if (sweeps) {
        (void)ask_and_wait(*store, Sweep{100});
      } else {
        (void)ask_and_wait(*store, Reap{100});
      }
    }
  }

  TestClock clock_;
  TestMysqlDatabase database_;
  std::unique_ptr<Store> plain_;
  std::unique_ptr<Store> mysql_;
  MysqlSession session_;
  using Named = std::pair<int, Token>;
  std::map<Named, Fence> fences_;
  std::map<Named, std::string> mysql_fences_;
};

TEST(MysqlFaceSteps, S17_the_procedures_make_the_steps_of_the_protocol) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 4; ++round) {
    Both both;
    for (int n = 0; n < 150 && !testing::Test::HasFailure(); ++n) {
      both.step(random);
      both.expect_equal(fmt::format("round {}, step {}", round, n));
    }
  }
}

}  // namespace
}  // namespace idem::test
