#pragma once

#include <idem/phases.hpp>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>

#include "library/guarded.hpp"
#include "support/back_off.hpp"

namespace idem::test {

using namespace std::chrono_literals;

/// The other side: charges, and knows a key again for as long as the test says.
class Bank {
 public:
  enum class Does { charge, decline, refuse_unsent, lose_answer, lose_request, fail };

  /// Its behaviour at the next calls; then it charges.
  void will(std::initializer_list<Does> script) {
    const std::lock_guard lock(mutex_);
    script_.assign(script);
  }
  void knows_keys(bool yes) { knows_keys_ = yes; }

  CallEnd charge(const std::string& key) {
    const std::lock_guard lock(mutex_);
    ++calls_;
    Does what = Does::charge;
    if (!script_.empty()) {
      what = script_.front();
      script_.pop_front();
    }
    // Asked again in so long a time that the attempt ends before.
    if (what == Does::refuse_unsent) return CallNotDone{"refused", 1h};
    if (what == Does::lose_request) return CallAmbiguous{"no answer", {}, 1h};
    if (what == Does::decline) return CallAnswered{"declined", {}};
    if (!knows_keys_ || !charges_.contains(key)) charges_[key].push_back(++last_);
    if (what == Does::fail) throw std::runtime_error("the client of the bank failed");
    if (what == Does::lose_answer) return CallAmbiguous{"no answer", {}, 1h};
    return CallAnswered{"charged", fmt::format("ch_{}", charges_[key].front())};
  }
  LookedUp look_up(const std::string& key) {
    const std::lock_guard lock(mutex_);
    ++lookups_;
    if (!can_tell_) return CannotTell{"away"};
    if (!charges_.contains(key)) return NothingThere{};
    return CallAnswered{"charged", fmt::format("ch_{}", charges_[key].front())};
  }
  void can_tell(bool yes) { can_tell_ = yes; }

  int charges() const {
    int all = 0;
    for (const auto& [key, numbers] : charges_) all += static_cast<int>(numbers.size());
    return all;
  }
  int calls() const { return calls_; }
  int lookups() const { return lookups_; }

 private:
  std::mutex mutex_;
  std::deque<Does> script_;
  bool knows_keys_ = true;
  bool can_tell_ = true;
  std::map<std::string, std::vector<int>> charges_;
  int last_ = 0;
  int calls_ = 0;
  int lookups_ = 0;
};

using Does = Bank::Does;

class Phases : public Guarded {
 protected:
  enum class Declares { window, lookup, none };

  static PhasedOptions rules() {
    PhasedOptions options;
    options.guard.operation = "charge";
    options.guard.lease = 400ms;
    options.complete_interval = 0ms;
    return options;
  }

  /// created → charged → finished.
  std::vector<Phase> phases(Declares declares = Declares::window) {
    Phase created{.name = "created", .work = [this](const PhaseRun& run, Transaction& tx) {
                    ++ran_created_;
                    tx.run("INSERT INTO payments (id, amount) VALUES ($1, 5)",
                           {to_hex(run.id.bytes)});
                    return PhaseEnd(NextPhase{});
                  }};
    Phase charged{.name = "charged", .work = [this](const PhaseRun& run, Transaction& tx) {
                    ++ran_charged_;
                    if (run.called.answer == "declined") {
                      tx.run("UPDATE payments SET amount = 1 WHERE id = $1",
                             {to_hex(run.id.bytes)});
                      return PhaseEnd(Response{402, {}, "declined"});
                    }
                    tx.run("UPDATE payments SET amount = 7 WHERE id = $1", {to_hex(run.id.bytes)});
                    return PhaseEnd(NextPhase{});
                  }};
    charged.call.send = [this](const PhaseCall& call) { return bank_.charge(call.key); };
    charged.call.timeout = 100ms;
    if (declares == Declares::window) charged.call.repetition.deduplicates = 1h;
    if (declares == Declares::lookup) {
      charged.call.repetition.lookup = [this](const PhaseCall& call) {
        return bank_.look_up(call.key);
      };
      charged.call.repetition.lookup_grace = 10ms;
    }
    Phase finished{.name = "finished", .work = [this](const PhaseRun& run, Transaction& tx) {
                     if (fails_to_finish_-- > 0) tx.fail("as the test wants it");
                     tx.enqueue({.destination = "receipts", .type = "paid", .payload = "{}"});
                     return PhaseEnd(Response{201, {}, "paid " + to_hex(run.id.bytes)});
                   }};
    return {created, charged, finished};
  }

  /// Until so much time has passed by the store's clock.
  void wait_by_the_store(Millis length) {
    const auto from = ask_and_wait(engine_->store(), Count{})->now;
    while (ask_and_wait(engine_->store(), Count{})->now < from + length) back_off();
  }

  Response until_it_ends(PhasedGuard& guard, const std::string& key) {
    for (;;) {
      Response answer = guard.serve(payment(key));
      if (code_of(answer) != "in_progress") return answer;
      back_off();
    }
  }
  std::int64_t count(const std::string& sql) {
    const auto rows = engine_->transactions()->run(sql);
    if (!rows) ADD_FAILURE() << rows.error();
    return rows ? std::get<std::int64_t>(rows->at(0).at(0)) : -1;
  }
  std::int64_t flows() {
    return count(GetParam() != "postgres" ? "SELECT count(*) FROM idem_flows"
                                          : "SELECT count(*) FROM idem.flows");
  }
  std::int64_t messages() {
    return count(GetParam() != "postgres" ? "SELECT count(*) FROM idem_outbox"
                                          : "SELECT count(*) FROM idem.outbox");
  }

  Bank bank_;
  std::atomic<int> ran_created_ = 0;
  std::atomic<int> ran_charged_ = 0;
  std::atomic<int> fails_to_finish_ = 0;
};

}  // namespace idem::test
