#include "library/phased.hpp"

#include <idem/sqlite.hpp>

#include <sqlite3.h>

/// The stored request of phased work that a medium has damaged, and what the log says of phases.
namespace idem::test {
namespace {

class DamagedFlow : public Phases {
 protected:
  DamagedFlow() { start(); }
  ~DamagedFlow() override { stop(); }

  void stop() {
    guard_.reset();
    engine_.reset();
  }
  void start() {
    stop();
    engine_ = std::make_unique<Engine>(
        open(), EngineOptions{.log = [this](LogLevel, std::string_view event, auto fields) {
          const std::lock_guard lock(mutex_);
          log_ += event;
          for (const LogField& field : fields)
            log_ += fmt::format(" {}={}", field.name, field.value);
          log_ += '\n';
        }});
  }
  bool has_logged(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return log_.find(text) != log_.npos;
  }

  /// The stored request then asks for 9 instead of 5.
  void damage() {
    if (GetParam() == "postgres") {
      const auto done = engine_->transactions()->run(
          "UPDATE idem.flows SET input = overlay(input PLACING '9'::bytea"
          " FROM position(':5'::bytea IN input) + 1)"
          " WHERE position(':5'::bytea IN input) > 0 RETURNING 1");
      ASSERT_TRUE(done && done->size() == 1) << (done ? "none" : done.error());
      return;
    }
    stop();
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(url_.substr(url_.find(':') + 1).c_str(), &db), SQLITE_OK);
    const auto hex_of = [](void* out, int, char** cells, char**) {
      *static_cast<std::string*>(out) = cells[0];
      return 0;
    };
    std::string hex;
    const std::string undamaged = " FROM idem_flows WHERE instr(hex(input), '3A357D') > 0";  // :5}
    EXPECT_EQ(sqlite3_exec(db, ("SELECT hex(input)" + undamaged).c_str(), hex_of, &hex, nullptr),
              SQLITE_OK);
    const std::string before = hex;
    const auto at = hex.find("3A357D");
    ASSERT_NE(at, hex.npos) << hex;
    hex[at + 3] = '9';
    EXPECT_EQ(sqlite3_exec(
                  db,
                  ("UPDATE idem_flows SET input = x'" + hex + "' WHERE input = x'" + before + "'")
                      .c_str(),
                  nullptr, nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
    start();
  }

  std::mutex mutex_;
  std::string log_;
};

INSTANTIATE_TEST_SUITE_P(Stores, DamagedFlow, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

// The next attempt charged what the damaged bytes said.
TEST_P(DamagedFlow, S22_S16_no_attempt_acts_on_it) {
  for (const bool by_retry : {true, false}) {
    const std::string key = by_retry ? "k1" : "k2";
    bank_.will({Does::lose_request});  // The next attempt is due once the lease is over.
    {
      PhasedGuard guard(*engine_, rules(), phases());
      EXPECT_EQ(code_of(guard.serve(payment(key))), "in_progress");
    }
    const int calls = bank_.calls();
    const int ran = ran_charged_;
    damage();
    PhasedGuard guard(*engine_, rules(), phases());
    if (!by_retry) {
      while (!has_logged("work_unreadable") && ran_charged_ == ran) guard.complete_due();
    }
    EXPECT_EQ(code_of(until_it_ends(guard, key)), "outcome_unknown");
    EXPECT_TRUE(has_logged("work_unreadable"));
    EXPECT_EQ(bank_.calls(), calls);
    EXPECT_EQ(ran_charged_, ran);
    const std::lock_guard lock(mutex_);
    log_.clear();
  }
}

TEST_P(DamagedFlow, S16_S17_a_phases_exception_is_logged_with_the_statement_before_it) {
  auto made = phases();
  made[0].work = [](const PhaseRun&, Transaction& tx) -> PhaseEnd {
    tx.run("INSERT INTO payments VALUES ('p', 0)");
    throw std::runtime_error("no row");
  };
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(guard.serve(payment("k")).status, 500);
  EXPECT_TRUE(has_logged("phase_threw"));
  EXPECT_TRUE(has_logged("the phase threw: no row; its transaction had failed: ")) << log_;
  EXPECT_TRUE(has_logged("constraint")) << log_;
}

// On SQLite a service cannot take anything of the store away.
using UnreadableFlows = DamagedFlow;
INSTANTIATE_TEST_SUITE_P(Stores, UnreadableFlows, testing::Values("postgres"),
                         [](const auto& kind) { return kind.param; });

// A completer asks again every second, for as long as the function is away.
TEST_P(UnreadableFlows, S19_V31_a_completer_that_cannot_read_writes_few_lines) {
  PhasedGuard guard(*engine_, rules(), phases());
  const auto ran = [&](const char* statement) {
    const auto done = engine_->transactions()->run(statement);
    EXPECT_TRUE(done) << (done ? "" : done.error());
  };
  ran("ALTER FUNCTION idem.due_flows(text, bigint) RENAME TO away");
  for (int turn = 0; turn < 20; ++turn) EXPECT_EQ(guard.complete_due(), 0U);
  ran("ALTER FUNCTION idem.away(text, bigint) RENAME TO due_flows");
  EXPECT_EQ(guard.complete_due(), 0U);
  const std::lock_guard lock(mutex_);
  const auto first = log_.find("completer_failed operation=");
  ASSERT_NE(first, log_.npos) << log_;
  EXPECT_EQ(log_.find("completer_failed", first + 1), log_.npos) << log_;
  EXPECT_NE(log_.find("completer_recovered"), log_.npos) << log_;
}

}  // namespace
}  // namespace idem::test
