#include "store_conformance/postgres/asking.hpp"

/// Damage outside the stored answers on PostgreSQL (protocol.md §22): a record that contradicts
/// itself, and lines of the evidence log.
namespace idem::test {
namespace {

class PostgresContradiction : public testing::Test {
 protected:
  PostgresContradiction() : store_(open_by_uri(database_.uri())), session_(database_.uri()) {}

  void damage(const std::string& how) { session_.run("UPDATE idem.slots SET " + how); }
  std::string row() { return session_.run("SELECT s::text FROM idem.slots s"); }
  void complete(int number, StoredResponse response = answer(201, "paid")) {
    ASSERT_TRUE(ask_and_wait(*store_, a_complete(run(*store_, number), std::move(response))));
  }
  /// Neither run, nor answered, nor taken for absent, and as it was afterwards.
  void expect_damaged(int number, const std::string& how) {
    const std::string before = row();
    const auto is_damaged = [&](const auto& reply) {
      return !reply && reply.error().code == StoreError::Code::damaged &&
             reply.error().record == key(number);
    };
    EXPECT_TRUE(is_damaged(try_ask(*store_, a_reserve(number, 2)))) << how;
    Accept accept = an_accept(number);
    accept.as.generation = store_->identity().generation;
    EXPECT_TRUE(is_damaged(ask_and_wait(*store_, accept))) << how;
    Reserve other = a_reserve_in(*store_, 99, 3);
    other.also = {{key(number), {}}};
    EXPECT_TRUE(is_damaged(ask_and_wait(*store_, other))) << how;
    const auto found = ask_and_wait(*store_, Find{key(number)});
    ASSERT_TRUE(is_damaged(found)) << how;
    EXPECT_NE(found.error().detail.find("contradict each other"), std::string::npos) << how;
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_TRUE(ask_and_wait(*store_, Sweep{10})->empty()) << how;
      EXPECT_TRUE(ask_and_wait(*store_, Reap{10})->empty()) << how;
    }
    for (const auto as : {Resolve::As::completed, Resolve::As::failed_retryable}) {
      EXPECT_TRUE(is_damaged(ask_and_wait(*store_, a_resolve(number, as, fence(), StoreTime()))))
          << how;
    }
    EXPECT_TRUE(is_damaged(ask_and_wait(*store_, CacheBust{key(number), fence(), "why", "who"})));
    EXPECT_EQ(row(), before) << how;
  }
  std::optional<Fence> fence() {
    return static_cast<Fence>(std::stoull(session_.run("SELECT max(fence) FROM idem.slots")));
  }
  /// Repairs what the last damage has changed.
  void expect_damaged_by(int number, const std::string& how) {
    session_.run("DROP TABLE IF EXISTS sound; CREATE TABLE sound AS SELECT * FROM idem.slots");
    damage(how);
    expect_damaged(number, how);
    session_.run("DELETE FROM idem.slots; INSERT INTO idem.slots SELECT * FROM sound");
  }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  Psql session_;
};

TEST_F(PostgresContradiction, S22_a_completed_record_of_another_state_does_not_run) {
  for (int number = 1; number <= 2; ++number) {
    complete(number, answer(201, std::string(number == 1 ? 10 : 9'000, 'x')));  // In it, and apart.
    for (const std::string state :
         {"failed_retryable", "pending", "in_progress", "unknown", "expired"}) {
      expect_damaged_by(number, "state = '" + state + "'");
    }
    EXPECT_TRUE(is<Replay>(*try_ask(*store_, a_reserve(number, 2)))) << "it is repaired";
    session_.run("DELETE FROM idem.slots");
  }
}

TEST_F(PostgresContradiction, S22_a_completed_record_of_other_times_does_not_run) {
  const std::string past = "idem.now() - interval '1 s'";
  for (const std::string state : {"completed", "expired"}) {
    complete(1, answer(201, std::string(9'000, 'x')));
    if (state == "expired") {
      damage(
          "state = 'expired', changed_at = expires_at, answer = NULL, response_status = NULL,"
          " body_kept = NULL, checksum = NULL");
      EXPECT_TRUE(is<Expired>(*try_ask(*store_, a_reserve(1, 2))));
    }
    expect_damaged_by(1, "expires_at = " + past);
    expect_damaged_by(1, "tombstone_until = " + past);
    expect_damaged_by(1, "expires_at = " + past + ", tombstone_until = " + past);
    expect_damaged_by(1, "completed_at = completed_at - interval '1 month'");
    for (const std::string member :
         {"expires_at", "tombstone_until", "completed_at", "retention", "tombstone"}) {
      if (member != "retention" && member != "tombstone") expect_damaged_by(1, member + " = NULL");
      if (member == "retention" || member == "tombstone") expect_damaged_by(1, member + " = 1");
    }
    session_.run("DELETE FROM idem.slots");
  }
}

TEST_F(PostgresContradiction, S22_nor_does_a_running_or_unknown_record_that_reads_as_released) {
  const Execute attempt = run(*store_, 1);
  for (const std::string state : {"failed_retryable", "completed", "expired", "pending"}) {
    expect_damaged_by(1, "state = '" + state + "'");
  }
  ASSERT_TRUE(ask_and_wait(*store_, a_mark_unknown(attempt)));
  for (const std::string state : {"failed_retryable", "completed", "expired", "pending"}) {
    expect_damaged_by(1, "state = '" + state + "'");
  }
}

TEST_F(PostgresContradiction, S22_an_owners_answer_heals_its_record_and_replaces_none) {
  const Execute attempt = run(*store_, 1);
  damage("state = 'failed_retryable'");
  const auto released = ask_and_wait(*store_, a_release(attempt));
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, StoreError::Code::damaged);
  EXPECT_EQ(released.error().record, key(1));
  ASSERT_EQ(ask_and_wait(*store_, a_complete(attempt, answer(201, "paid")))->verdict,
            Verdict::done);
  EXPECT_EQ(std::get<Replay>(*try_ask(*store_, a_reserve(1, 2))).response.body, "paid");
  damage("state = 'in_progress', locked_until = idem.now() + interval '1 h'");
  const auto again = ask_and_wait(*store_, a_complete(attempt, answer(201, "other")));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, StoreError::Code::damaged);
}

TEST_F(PostgresContradiction, S22_a_lost_mark_is_no_proof_that_nothing_was_sent) {
  const auto outcome_after = [&](int number, bool dispatched, const std::string& how) {
    Reserve verb = a_reserve(number);
    verb.dispatched = dispatched;
    EXPECT_TRUE(is<Execute>(*try_ask(*store_, verb)));
    damage("locked_until = idem.now() - interval '1 s'" + how);
    return *try_ask(*store_, a_reserve(number, 2));
  };
  EXPECT_TRUE(is<Execute>(outcome_after(1, false, "")));
  session_.run("DELETE FROM idem.slots");
  EXPECT_TRUE(is<Unknown>(outcome_after(2, true, ", dispatched = false")));
  session_.run("DELETE FROM idem.slots");
  // Once it is marked, the mark that was not there does not come back.
  const Execute won = [&] {
    Reserve verb = a_reserve(3);
    verb.dispatched = false;
    return std::get<Execute>(*try_ask(*store_, verb));
  }();
  ASSERT_TRUE(ask_and_wait(*store_, Dispatched{won.id, won.attempt}));
  damage("dispatched = false, locked_until = idem.now() - interval '1 s'");
  session_.run("UPDATE idem.lease_due_batches SET due_at = idem.now() - interval '1 s'");
  ASSERT_EQ(ask_and_wait(*store_, Sweep{10})->size(), 1U);
  EXPECT_TRUE(is<Unknown>(*try_ask(*store_, a_reserve(3, 2))));
}

TEST_F(PostgresContradiction, S22_no_kept_event_is_read_from_a_damaged_log) {
  const Execute attempt = run(*store_, 1);
  Resolve event =
      a_resolve(1, Resolve::As::completed, attempt.attempt.fence, StoreTime(Millis(1000)));
  event.reason = "body_b64";
  ASSERT_TRUE(ask_and_wait(*store_, event));
  ASSERT_EQ(ask_and_wait(*store_, ReadEvidence{key(1)})->size(), 1U);
  for (const std::string how :
       {"reason = 'body_b65'", "evidence = 'x' || evidence", "source = ''", "fence = 0",
        "applied = NOT applied", "after_state = NULL", "before_state = 'unknown'",
        "observed_at = observed_at + interval '1 s'", "recorded_at = recorded_at + interval '1 s'",
        "checksum = set_byte(checksum, 0, 1 # get_byte(checksum, 0))"}) {
    session_.run(
        "SET session_replication_role = replica; CREATE TABLE sound AS SELECT * FROM"
        " idem.evidence; UPDATE idem.evidence SET " +
        how);
    const auto read = ask_and_wait(*store_, ReadEvidence{key(1)});
    ASSERT_FALSE(read) << how;
    EXPECT_EQ(read.error().code, StoreError::Code::damaged);
    EXPECT_EQ(read.error().record, key(1));
    session_.run(
        "DELETE FROM idem.evidence; INSERT INTO idem.evidence OVERRIDING SYSTEM VALUE SELECT * FROM"
        " sound; DROP TABLE sound");
  }
  ASSERT_TRUE(ask_and_wait(*store_, ReadEvidence{key(1)}));
  session_.run("UPDATE idem.evidence SET checksum = NULL");
  EXPECT_TRUE(ask_and_wait(*store_, ReadEvidence{key(1)})) << "a line from before the checksums";
  ASSERT_TRUE(ask_and_wait(*store_, event));
  EXPECT_TRUE(ask_and_wait(*store_, ReadEvidence{key(1)}));
  session_.run(
      "UPDATE idem.evidence SET checksum = NULL WHERE line = (SELECT max(line) FROM"
      " idem.evidence)");
  EXPECT_TRUE(ask_and_wait(*store_, ReadEvidence{key(1)}));
  ASSERT_TRUE(ask_and_wait(*store_, event));
  ASSERT_TRUE(ask_and_wait(*store_, event));
  session_.run(
      "UPDATE idem.evidence SET checksum = NULL WHERE line = (SELECT max(line) FROM"
      " idem.evidence)");
  EXPECT_FALSE(ask_and_wait(*store_, ReadEvidence{key(1)})) << "behind one that has a checksum";
}

class PostgresLogsAtOnce : public PostgresContradiction {
 protected:
  static constexpr int many = 50;
  static constexpr int damaged = 7;

  PostgresLogsAtOnce() {
    for (int number = 1; number <= many; ++number) {
      const Execute attempt = run(*store_, number);
      EXPECT_TRUE(ask_and_wait(*store_, a_mark_unknown(attempt)));
      Resolve found =
          a_resolve(number, Resolve::As::completed, attempt.attempt.fence, StoreTime(Millis(1000)));
      found.evidence = std::to_string(number);
      found.response = answer();
      EXPECT_EQ(ask_and_wait(*store_, found)->verdict, Resolve::Verdict::done);
    }
  }

  void expect_all_but_one(StoreError::Code code) {
    std::vector<StoreCall> reads;
    for (int number = 1; number <= many; ++number) reads.emplace_back(ReadEvidence{key(number)});
    const auto results = ask_at_once(*store_, std::move(reads));
    for (int number = 1; number <= many; ++number) {
      SCOPED_TRACE(number);
      const auto& result = results[static_cast<std::size_t>(number - 1)];
      ASSERT_EQ(result.has_value(), number != damaged);
      if (!result) {
        EXPECT_EQ(result.error().code, code) << result.error().detail;
        continue;
      }
      const auto& lines = std::get<std::vector<EvidenceEntry>>(*result);
      EXPECT_EQ(lines.back().evidence, std::to_string(number));
    }
  }
};

TEST_F(PostgresLogsAtOnce, S22_only_the_damaged_one_is_refused) {
  session_.run(
      fmt::format("SET session_replication_role = replica; UPDATE idem.evidence SET applied ="
                  " false WHERE evidence = '{}'",
                  damaged));
  expect_all_but_one(StoreError::Code::damaged);
}

// An unreadable page, a value that this server cannot decompress, one that is too large for it.
TEST_F(PostgresLogsAtOnce, S22_only_the_one_that_the_server_cannot_read_is_not_read) {
  for (const std::string code : {"XX001", "0A000", "54000"}) {
    session_.run(
        fmt::format("CREATE OR REPLACE FUNCTION idem.has_damaged_evidence(of uuid) RETURNS boolean"
                    " LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT FROM idem.evidence e WHERE"
                    " e.id = of AND e.evidence = '{}') THEN RAISE EXCEPTION 'unreadable' USING"
                    " ERRCODE = '{}'; END IF; RETURN false; END $$",
                    damaged, code));
    expect_all_but_one(StoreError::Code::unavailable);
  }
}

// The line that is damaged may be the one that says that the work ran.
TEST_F(PostgresContradiction, S22_no_answer_is_released_beside_a_damaged_log) {
  const Execute attempt = run(*store_, 1);
  ASSERT_TRUE(ask_and_wait(*store_, a_mark_unknown(attempt)));
  Resolve found =
      a_resolve(1, Resolve::As::completed, attempt.attempt.fence, StoreTime(Millis(1000)));
  found.response = answer(500, "failed");
  ASSERT_EQ(ask_and_wait(*store_, found)->verdict, Resolve::Verdict::done);
  session_.run("SET session_replication_role = replica; UPDATE idem.evidence SET applied = false");
  EXPECT_EQ(ask_and_wait(*store_, CacheBust{key(1), attempt.attempt.fence, "why", "who"})->verdict,
            Resolve::Verdict::by_evidence);
}

}  // namespace
}  // namespace idem::test
