#include <idem/callback_guard.hpp>
#include <idem/relay.hpp>

#include "library/phased.hpp"

/// The library used wrongly: each mistake is reported with the remedy.
namespace idem::test {
namespace {

std::unique_ptr<Store> opened(const std::string& url = "memory:") {
  auto store = open_store(url, {});
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error();
  std::abort();
}

/// With a database of its own, which goes with the test.
class Misuse : public testing::Test {
 protected:
  Misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  std::string sqlite() {
    dir_.emplace();
    return "sqlite:" + (dir_->path() / "service.db").string();
  }
  std::optional<TempDir> dir_;
};

Phase step(const std::string& name) {
  return {.name = name, .work = [](const PhaseRun&, Transaction&) { return PhaseEnd(Response{}); }};
}
PhasedOptions charging() {
  PhasedOptions options;
  options.guard.operation = "charge";
  options.complete_interval = 0ms;
  return options;
}

TEST_F(Misuse, S17_an_engine_without_a_store_and_a_guard_without_an_engine_say_so) {
  EXPECT_DEATH(Engine(nullptr),
               "Engine: the store is null; look at what open_store\\(\\) returned");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
  Engine* volatile none = nullptr;  // Which the sanitizers find by themselves.
  EXPECT_DEATH(Guard(*none, {}), "Guard: the engine is null; make an idem::Engine first");
  EXPECT_DEATH(CallbackGuard(*none, {}), "CallbackGuard: the engine is null");
#endif
}

TEST_F(Misuse, S17_a_guard_without_a_handler_is_reported_before_anything_is_reserved) {
  Engine engine(opened());
  Guard guard(engine, {.operation = "pay"});
  EXPECT_DEATH((void)guard.serve(payment("k"), Handler()),
               "Guard of \"pay\": the handler is null; pass the function");
  EXPECT_DEATH((void)guard.serve_in_transaction(payment("k"), TransactionWork()),
               "Guard of \"pay\": the handler is null");
  CallbackGuard calls_back(engine, {.operation = "pay"});
  EXPECT_DEATH(calls_back.serve(payment("k"), nullptr, [](Response) {}),
               "CallbackGuard of \"pay\": the handler is null");
}

TEST_F(Misuse, S17_options_that_no_request_could_be_served_under_are_named) {
  Engine engine(opened());
  const auto dies = [&](const GuardOptions& options, const char* why) {
    EXPECT_DEATH(Guard(engine, options), why);
  };
  dies({.operation = "pay", .lease = 0ms}, "Guard of \"pay\": lease is 0");
  dies({.operation = "pay", .run_max = 0ms}, "run_max is 0");
  dies({.operation = "pay", .retention = 0ms}, "retention is 0");
  dies({.operation = "pay", .key_fields = {}}, "key_fields is empty: name the field");
  dies({.operation = "pay", .fingerprint = {.include = {"no pointer"}}}, "fingerprint: ");
  dies({.operation = "pay", .formerly = {""}}, "an entry of formerly is empty");
  dies({.operation = "pay", .after_crash = LeasePolicy::resume},
       "after_crash = resume is for a PhasedGuard; write unknown, or rerun");
}

TEST_F(Misuse, S17_rows_in_a_store_that_holds_none_are_refused_with_the_stores_that_do) {
  Engine engine(opened());
  Guard guard(engine, {.operation = "pay"});
  const auto nothing = [](Transaction&) -> Outcome { return Response{}; };
  EXPECT_DEATH(
      (void)guard.serve(payment("k"),
                        [&](const Request&, Execution& run) { return run.commit(nothing); }),
      "commit\\(\\): this store has no transactions .* open a sqlite:, postgres:// or mysql:// "
      "store");
  EXPECT_DEATH((void)guard.serve_in_transaction(payment("k"), nothing),
               "serve_in_transaction\\(\\): this store has no transactions");
  EXPECT_DEATH(PhasedGuard(engine, charging(), {step("a")}), "this store has no transactions");
  EXPECT_DEATH(Relay(engine, {}), "Relay: this store has no outbox");
}

TEST_F(Misuse, S16_the_mistakes_of_phases_name_the_phase) {
  Engine engine(opened());
  const auto dies = [&](const PhasedOptions& options, std::vector<Phase> phases, const char* why) {
    EXPECT_DEATH(PhasedGuard(engine, options, phases), why);
  };
  dies(charging(), {}, "PhasedGuard of \"charge\": there are no phases: give one at least");
  dies(charging(), {step("")}, "phase 1 \\(\"\"\\): it has no name");
  dies(charging(), {step("started")}, "is the point before the first phase");
  dies(charging(), {step(std::string(65, 'x'))}, "its name is longer than 64 bytes");
  dies(charging(), {step("a"), step("b"), step("a")},
       "phase 3 \\(\"a\"\\): another phase has this name");
  dies(charging(), {step("a"), {.name = "b"}}, "phase 2 \\(\"b\"\\): it has no work");
  Phase calls = step("b");
  calls.call.send = [](const PhaseCall&) -> CallEnd { return CallAnswered{}; };
  calls.call.timeout = 40s;
  dies(charging(), {step("a"), calls},
       "its call may take 40000 ms, and the lease must cover that twice: set guard.lease to 80000");
  calls.call.timeout = 1s;
  calls.call.repetition.deduplicates = 24h * 365;
  dies(charging(), {calls}, "set guard.retention and guard.tombstone so that together they cover");
  dies({}, {step("a")}, "guard.operation is empty: name it");
}

TEST_F(Misuse, S18_the_mistakes_of_relays_name_the_destination) {
  Engine engine(opened(sqlite()));
  const auto send = [](const Delivery&) -> CallEnd { return CallAnswered{}; };
  const auto dies = [&](std::vector<Destination> destinations, const char* why) {
    EXPECT_DEATH(Relay(engine, destinations, {.interval = 0ms}), why);
  };
  dies({{.name = "bank"}}, "Relay to \"bank\": its send is null");
  dies({{.name = "bank", .send = send, .timeout = 1h}}, "the lease does not cover one delivery");
  dies({{.name = "bank", .send = send}, {.name = "bank", .send = send}},
       "two destinations are called \"bank\"");
}

// Its thread went on in what was gone.
TEST_F(Misuse, S16_an_engine_that_ends_before_a_completer_or_a_relay_is_reported) {
  const std::string url = sqlite();
  EXPECT_DEATH(
      {
        auto engine = std::make_unique<Engine>(opened(url));
        auto options = charging();
        options.complete_interval = 1h;
        PhasedGuard guard(*engine, options, {step("a")});
        engine.reset();
      },
      "~Engine: 1 of its PhasedGuards and Relays are still at work; declare the engine before "
      "them");
  EXPECT_DEATH(
      {
        auto engine = std::make_unique<Engine>(opened(url));
        Relay relay(*engine, {});
        engine.reset();
      },
      "~Engine: 1 of its PhasedGuards and Relays");
}

TEST_F(Misuse, S17_a_guard_asked_after_its_engines_end_refuses_with_the_reason) {
  auto engine = std::make_unique<Engine>(opened());
  Guard guard(*engine, {.operation = "pay"});
  CallbackGuard calls_back(*engine, {.operation = "pay"});
  testing::internal::CaptureStderr();
  engine.reset();
  const auto runs = [](const Request&, Execution&) -> Outcome {
    ADD_FAILURE() << "it ran";
    return Response{};
  };
  EXPECT_EQ(guard.serve(payment("k"), runs).status, 503);
  int status = 0;
  calls_back.serve(
      payment("k"), [](auto) { ADD_FAILURE() << "it ran"; },
      [&](const Response& answer) { status = answer.status; });
  EXPECT_EQ(status, 503);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("idem: warning engine_before_its_guards guards=\"2\""), log.npos) << log;
  EXPECT_NE(log.find("declare the engine before its guards"), log.npos) << log;
  EXPECT_NE(log.find("guard_without_engine guard=\"CallbackGuard\""), log.npos) << log;
}

// It waited for ever.
TEST_F(Misuse, S17_a_wait_for_the_store_on_its_own_thread_is_refused_with_what_to_do) {
  for (const std::string& url : {std::string("memory:"), sqlite()}) {
    const auto store = opened(url);
    std::promise<std::string> reply;
    ask(*store, Find{}, [&](auto) {
      const auto found = ask_and_wait(*store, Find{});
      reply.set_value(found ? "found" : found.error().detail);
    });
    EXPECT_NE(reply.get_future().get().find("ask with a completion"), std::string::npos) << url;
  }
}

TEST_F(Misuse, S17_a_handlers_exception_is_on_stderr_where_there_is_no_log) {
  Engine engine(opened());
  Guard guard(engine, {.operation = "pay"});
  testing::internal::CaptureStderr();
  const auto answer = guard.serve(payment("k"), [](const Request&, Execution&) -> Outcome {
    throw std::runtime_error("the card network\nis down");
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code_of(answer), "outcome_unknown");
  EXPECT_NE(log.find("idem: error handler_threw operation_ref=\""), log.npos) << log;
  EXPECT_NE(log.find("why=\"the handler threw: the card network is down\""), log.npos) << log;
  EXPECT_EQ(answer.body.find("card"), std::string::npos) << "and no answer";
}

/// An error in a service's rows reaches its log, with any database.
class Logged : public Guarded {
 protected:
  Logged() {
    guard_.reset();
    engine_.reset();
    engine_ = std::make_unique<Engine>(
        open(), EngineOptions{.log = [this](LogLevel, std::string_view event, auto fields) {
          const std::lock_guard lock(mutex_);
          log_ += event;
          for (const LogField& field : fields)
            log_ += fmt::format(" {}={}", field.name, field.value);
          log_ += '\n';
        }});
    guard_ = std::make_unique<Guard>(*engine_, commits_only());
  }
  ~Logged() override {
    guard_.reset();
    engine_.reset();
  }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return std::exchange(log_, {});
  }
  std::mutex mutex_;
  std::string log_;
};

INSTANTIATE_TEST_SUITE_P(Stores, Logged, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Logged, S17_the_databases_error_and_the_works_exception) {
  const auto throwing = [](Transaction&) -> Outcome {
    throw std::runtime_error("of the business");
  };
  const auto in_one = [&](const TransactionWork& work) {
    (void)guard_->serve_in_transaction(payment("k"), work);
    return log();
  };
  const auto in_handler = [&](const TransactionWork& work) {
    (void)serve(payment("k"), work);
    return log();
  };
  for (const auto& text : {in_one(paying(0)), in_handler(paying(0))}) {
    EXPECT_NE(text.find("transaction_failed"), text.npos) << text;
    EXPECT_NE(text.find("amount"), text.npos) << text;
  }
  for (const auto& text : {in_one(throwing), in_handler(throwing)}) {
    EXPECT_NE(text.find("threw: of the business"), text.npos) << text;
  }
}

// Only the exception was there, which says of the failed statement that it had no row.
TEST_P(Logged, T57_S17_both_the_failed_statement_and_the_exception_behind_it) {
  const TransactionWork work = [](Transaction& tx) -> Outcome {
    tx.run("INSERT INTO payments VALUES ('p', 0)");
    throw std::runtime_error("no row");
  };
  const auto expect_both = [&](const std::string& way) {
    const std::string text = log();
    const auto begin = text.find("transaction_failed");
    ASSERT_NE(begin, text.npos) << way << ": " << text;
    const std::string line = text.substr(begin, text.find('\n', begin) - begin);
    EXPECT_NE(line.find("the work threw: no row"), line.npos) << way << ": " << text;
    EXPECT_NE(line.find("constraint"), line.npos) << way << ": " << text;
  };
  EXPECT_EQ(guard_->serve_in_transaction(payment("k1"), work).status, 500);
  expect_both("serve_in_transaction");
  EXPECT_EQ(code_of(serve(payment("k2"), work)), "outcome_unknown");
  expect_both("commit");
  CallbackGuard guard(*engine_, commits_only());
  std::promise<Response> answered;
  guard.serve(
      payment("k3"),
      [&](const std::shared_ptr<HandlerTurn>& turn) {
        turn->commit(work, [turn](const std::exception_ptr& thrown, const Outcome&) {
          EXPECT_NE(thrown, nullptr);
          turn->finish(NotExecuted{{409, {}, "no"}});  // It says nothing of the exception.
        });
      },
      [&](Response answer) { answered.set_value(std::move(answer)); });
  EXPECT_EQ(answered.get_future().get().status, 409);
  expect_both("HandlerTurn::commit");
  EXPECT_EQ(payments(), 0);
}

// It ended the process without a sentence, on the store's thread.
TEST_P(Logged, T57_S17_a_handler_that_throws_instead_of_beginning_is_unknown) {
  CallbackGuard guard(*engine_, commits_only());
  std::promise<Response> answered;
  guard.serve(
      payment("k"),
      [](const std::shared_ptr<HandlerTurn>&) { throw std::runtime_error("of the handler"); },
      [&](Response answer) { answered.set_value(std::move(answer)); });
  EXPECT_EQ(code_of(answered.get_future().get()), "outcome_unknown");
  const std::string text = log();
  EXPECT_NE(text.find("handler_threw"), text.npos) << text;
  EXPECT_NE(text.find("the handler threw: of the handler"), text.npos) << text;
}

TEST_F(Misuse, S17_a_callback_that_throws_ends_the_process_with_its_name) {
  const auto throwing = [](auto&&...) { throw std::runtime_error("of the callback"); };
  const auto serve = [&](const auto& handler, const auto& done) {
    Engine engine(opened(sqlite()));
    CallbackGuard guard(engine, {.operation = "pay"});
    guard.serve(payment("k"), handler, done);
  };
  EXPECT_DEATH(serve([](const auto& turn) { turn->finish(Response{}); }, throwing),
               "the `done` of CallbackGuard::serve\\(\\) threw: of the callback");
  const auto committing = [&](const auto& turn) {
    turn->commit([](Transaction&) -> Outcome { return Response{}; }, throwing);
  };
  EXPECT_DEATH(serve(committing, [](const auto&) {}),
               "the `done` of HandlerTurn::commit\\(\\) threw: of the callback");
}

// On SQLite it waited for ever, and on PostgreSQL for the record that it held itself.
TEST_P(Logged, S17_work_that_asks_the_store_by_another_way_is_refused_with_what_to_do) {
  const auto answer = serve(payment("k"), [&](Transaction& tx) -> Outcome {
    const auto found = ask_and_wait(engine_->store(), Find{tx.record_id()});
    EXPECT_FALSE(found);
    const std::string why = found ? "" : found.error().detail;
    EXPECT_NE(why.find("use the Transaction that the work was given"), why.npos) << why;
    const auto rows = engine_->transactions()->run("SELECT 1");
    EXPECT_FALSE(rows);
    EXPECT_EQ(rows ? "" : rows.error(), why);
    return paying()(tx);
  });
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(payments(), 1);
}

}  // namespace
}  // namespace idem::test
