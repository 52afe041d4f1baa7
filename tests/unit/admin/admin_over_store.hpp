#pragma once

#include "admin/admin.hpp"
#include "admin/approvals_api.hpp"
#include "admin/audit/audit_trail.hpp"
#include "admin/jobs/job_lines.hpp"
#include "admin/order_body.hpp"
#include "http/spill_space.hpp"
#include "loop/offload.hpp"
#include "store/faulty.hpp"
#include "store/stores.hpp"

#include <gtest/gtest.h>

#include <idem/store_wait.hpp>

#include <future>
#include <thread>

namespace idem::admin {

/// The parts of the admin API over a store in memory, with its loop. Its clock moves by hand.
class AdminOverStore : public testing::Test {
 protected:
  AdminOverStore() : thread_([this] { loop_.run("test-loop"); }) {}
  ~AdminOverStore() override {
    loop_.stop();
    thread_.join();
  }

  /// Runs what `make` returns on the loop, and returns when all coroutines have ended. What `make`
  /// refers to must live until then.
  template <class Make>
  auto run(Make make) {
    using Result = decltype(await(make()));
    std::optional<Result> result;
    std::promise<void> done;
    std::function<void()> look = [&] {
      if (loop_.running() == 0) return done.set_value();
      loop_.post([&] { look(); });
    };
    loop_.post([&] {
      loop_.spawn(keep(make, result));
      look();
    });
    done.get_future().wait();
    return std::move(*result);
  }
  void post(Loop::Job job) {
    std::promise<void> done;
    loop_.post([&] {
      job();
      done.set_value();
    });
    done.get_future().wait();
    while (loop_.running() != 0) std::this_thread::yield();
  }

  template <class Verb>
  auto ask(Verb verb) {
    auto reply = ask_and_wait(*store_, std::move(verb));
    EXPECT_TRUE(reply);
    return std::move(*reply);
  }
  void append(const std::string& journal, std::uint64_t behind, std::string line) {
    EXPECT_TRUE(ask(AppendLine{journal, behind, std::move(line)}).appended) << journal;
  }
  std::uint64_t last_of(const std::string& journal) { return ask(ReadLines{journal}).last; }
  void pass(Millis time) { now_ += time.count(); }
  StoreTime now() const { return StoreTime(Millis(now_.load())); }

  /// A record whose outcome is unknown, with its fence.
  JobTarget unknown(std::uint8_t name) {
    Reserve verb;
    verb.id.bytes[0] = name;
    verb.scope = "acme";
    verb.operation = "charges";
    verb.fingerprints.emplace_back();
    verb.token.bytes[0] = name;
    verb.lease = Millis(1'000);
    verb.retention = std::chrono::hours(24);
    verb.generation = store_->identity().generation;
    const auto outcome = ask(verb);
    const auto* const granted = std::get_if<Execute>(&outcome);
    EXPECT_NE(granted, nullptr);
    if (granted == nullptr) return {};
    ask(MarkUnknown{granted->id, granted->attempt, "no answer", std::nullopt, ""});
    return {granted->id, granted->attempt.fence};
  }
  /// An order of ada that has its approvals.
  OrderBody approved(std::string body, std::string seen) const {
    AuditEntry signer;
    signer.who = "ada";
    signer.role = "operator";
    signer.login = "token";
    return {.body = std::move(body),
            .decider = "operator:ada",
            .signer = std::move(signer),
            .approved = Approved{id_, std::move(seen), now(), "bob"}};
  }
  /// The last outcome in the audit.
  std::string came_of() {
    const auto page = ask(ReadLines{std::string(audit_journal)});
    const auto line = page.lines.empty() ? std::nullopt : parse_audit_line(page.lines.back().bytes);
    return line ? line->entry.after : "";
  }

  static Login make_login() {
    LoginSettings settings;
    settings.approvals.needs = {2, 2, 2, 2};
    auto login =
        Login::open(settings, [](LogLevel, std::string_view, std::initializer_list<LogField>) {});
    return std::move(*login);
  }

  std::atomic<std::int64_t> now_{1'800'000'000'000};
  Loop loop_;
  /// Which calls fail, by the test.
  std::function<std::optional<Fault>(const StoreCall&)> fault_;
  std::unique_ptr<Store> store_ = [this] {
    auto memory = open_memory({}, [this] { return now(); });
    FaultPlan plan;
    plan.decide = [this](const StoreCall& call, std::uint64_t) -> std::optional<Fault> {
      return fault_ ? fault_(call) : Fault::none;
    };
    return make_faulty(std::move(*memory), std::move(plan));
  }();
  std::unique_ptr<http::SpillSpace> spill_ = std::move(*http::SpillSpace::open(testing::TempDir()));
  metrics::Registry registry_{metrics::TenantLabel::off, Secret{}};
  metrics::Shard& shard_ = registry_.add_shard();
  std::atomic<bool> draining_{false};
  std::vector<std::string> events_;
  LogSink log_ = [this](LogLevel, std::string_view event, std::initializer_list<LogField>) {
    events_.emplace_back(event);
  };
  AuditTrail audit_{loop_, *store_, log_};
  Offload offload_{"test-io"};
  AdminParts parts_{
      .loop = loop_,
      .store = *store_,
      .spill = *spill_,
      .registry = registry_,
      .draining = draining_,
      .log = log_,
      .audit = audit_,
      .login = make_login(),
      .gauges = [] { return metrics::Gauges{}; },
      .parse_duration = [](const std::string&) { return std::expected<Millis, std::string>(0); },
      .naming_parts = [](const std::string& name) { return std::vector<std::string>{name}; },
      .evidence_grace = Millis(60'000)};
  ApprovalsApi approvals_{parts_};
  const std::string id_ = std::string(32, 'a');

 private:
  template <class T>
  static T await(Task<T>);
  template <class Make, class Result>
  static Task<void> keep(Make make, std::optional<Result>& result) {
    auto task = make();
    result.emplace(co_await task);
  }

  std::thread thread_;
};

}  // namespace idem::admin
