#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <deque>
#include <random>
#include <set>
#include <thread>

#include "crash/bank.hpp"
#include "crash/clients.hpp"

// A day of payments at a bank that loses answers and events, tells twice and out of order, cannot
// be asked for a while, or shows late what it did; gateway and worker are killed now and then. At
// its end nobody has done anything by hand, and the bank's books are ours.

namespace idem::test {
namespace {

using std::chrono::milliseconds;

/// A day of 10,000 payments is the real one. A smaller one has four times the faults, so that each
/// kind happens, and a bank that is twenty times as quick to show what it did.
struct Scale {
  int payments = number_from("IDEM_DAY_PAYMENTS", 400);
  bool is_real = payments >= 10'000;
  double faults = is_real ? 1 : 4;
  milliseconds shown_after{is_real ? 30'000 : 1'500};
  milliseconds grace_when_late{is_real ? 40'000 : 2'000};
  int kills = std::max(5, payments / 250);
};

constexpr int clients = 8;
/// Payments of one client that wait for news; beyond that it begins no others.
constexpr std::size_t doubts_max = 50;

struct Payment {
  std::string key;
  Request request;
  bool leaves = false;   ///< Its client asks once, and never comes back for an answer it missed.
  bool is_over = false;  ///< For its client.
  bool doubted = false;  ///< A client was answered that the outcome is unknown.
  std::set<std::string> successes{};
};

std::vector<Payment> make_payments(int count, std::mt19937& random) {
  std::vector<Payment> all;
  for (int i = 0; i < count; ++i) {
    const auto key = fmt::format("payment-{}", i);
    const auto body = fmt::format(R"({{"amount":{},"currency":"EUR"}})", 1 + random() % 100'000);
    all.push_back({.key = key, .request = charge(key, {}, body), .leaves = random() % 10 == 0});
  }
  return all;
}

class Clients {
 public:
  Clients(std::vector<Payment>& payments, Whereabouts& whereabouts, unsigned seed)
      : payments_(payments), whereabouts_(whereabouts) {
    for (int i = 0; i < clients; ++i) {
      threads_.emplace_back([this, seed = seed + static_cast<unsigned>(i)] { work(seed); });
    }
  }
  void join() { threads_.clear(); }
  /// Answers that no client should ever get.
  std::vector<std::string> strange() {
    const std::lock_guard lock(mutex_);
    return strange_;
  }

 private:
  void work(unsigned seed) {
    std::mt19937 random(seed);
    std::deque<Payment*> later;
    for (;;) {
      const auto address = whereabouts_.wait();
      if (address.empty()) return;
      Payment* payment = later.size() < doubts_max ? next() : nullptr;
      if (payment != nullptr) {
        whereabouts_.count_request();
      } else if (!later.empty()) {
        payment = later.front();
        later.pop_front();
        ::poll(nullptr, 0, 20);  // The pause of a client that was asked to come back.
      } else {
        return;
      }
      ask(*payment, address, random() % 8 == 0);
      if (!payment->is_over && !payment->leaves) later.push_back(payment);
      // An old one between the new ones, and not only behind the last.
      if (!later.empty() && random() % 4 == 0) {
        ask(*later.front(), address, false);
        if (later.front()->is_over) later.pop_front();
      }
    }
  }

  Payment* next() {
    const auto at = static_cast<std::size_t>(next_++);
    return at < payments_.size() ? &payments_[at] : nullptr;
  }

  /// `twice`: by two connections at the same time, as an impatient client does.
  void ask(Payment& payment, const std::string& address, bool twice) {
    Connection first(address);
    if (!first.send(payment.request)) ::poll(nullptr, 0, 1);  // Its death is not yet known.
    if (twice) note_answer(payment, send_once(address, payment.request));
    note_answer(payment, first.read_response());
  }

  void note_answer(Payment& payment, const Response& answer) {
    const auto code = json_text(answer.body, "code");
    if (answer.status == 201) {
      payment.is_over = true;
      payment.successes.insert(answer.body);
    } else if (code == "outcome_unknown") {
      payment.doubted = true;
    } else if (answer.status != 0 && answer.status != 503 && code != "in_progress") {
      const std::lock_guard lock(mutex_);
      strange_.push_back(payment.key + ": " + answer.raw);
    }
  }

  std::vector<Payment>& payments_;
  Whereabouts& whereabouts_;
  std::atomic<int> next_{0};
  std::mutex mutex_;
  std::vector<std::string> strange_;
  std::vector<std::jthread> threads_;
};

/// The records, counted, and all that is wrong.
struct Books {
  int charged = 0, not_executed = 0, never_came = 0;
  int doubted = 0, by_question = 0, by_event = 0, found_absent = 0, kept = 0;
  std::vector<std::string> violations;
};

class Auditor {
 public:
  explicit Auditor(const Bank& bank) : bank_(bank) {
    for (const Json& line : bank.exported()) {
      charges_[line["key"].string].push_back(line["id"].string);
    }
  }

  Books audit(const std::vector<Payment>& payments) {
    for (const Payment& payment : payments) audit(payment);
    if (charges_.size() != static_cast<std::size_t>(books_.charged)) {
      books_.violations.push_back(
          fmt::format("{} keys were charged, {} records say so", charges_.size(), books_.charged));
    }
    return std::move(books_);
  }

 private:
  void audit(const Payment& payment) {
    key_ = payment.key;
    const auto found = charges_.find(payment.key);
    const auto ids = found == charges_.end() ? std::vector<std::string>{} : found->second;
    require(ids.size() <= 1, fmt::format("{} charges", ids.size()));
    require(payment.successes.size() <= 1, "two different successes");
    require(payment.is_over || payment.leaves, "its client never got an answer");
    const std::string ref = bank_.listed(payment.key)["ref"].string;
    if (ref.empty()) {
      ++books_.never_came;
      return require(ids.empty() && !payment.is_over && !payment.doubted, "its record is gone");
    }
    const Json record = bank_.read("/v1/keys/" + ref);
    const bool proven = audit_evidence(record);
    require(!payment.doubted || proven, "it was unknown, and no evidence says what ended that");
    if (payment.doubted) ++books_.doubted;
    if (record["state"].string == "completed") return audit_charged(payment, record, ids);
    ++books_.not_executed;
    require(record["state"].string == "failed_retryable", "it is " + record["state"].string);
    require(ids.empty() && !payment.is_over, "charged, and the record says it was not");
    require(proven || record["release_basis"].string == "proven", "nothing proves that");
  }

  void audit_charged(const Payment& payment, const Json& record,
                     const std::vector<std::string>& ids) {
    ++books_.charged;
    require(!ids.empty(), "the record has an answer, and there is no charge");
    if (ids.size() != 1) return;
    const auto body = decode_base64(record["response"]["body_b64"].string);
    require(json_text(body, "id") == ids[0], "its answer is of another charge: " + body);
    const auto replay = bank_.ask(payment.request);
    require(replay.status == 201 && replay.get("Idempotent-Replayed") == "true", "no replay");
    require(replay.body == body, "the replay is not what is stored");
    require(payment.successes.empty() || payment.successes.contains(replay.body),
            "the replay is not its client's first answer");
  }

  /// Whether some line of it ended an unknown outcome.
  bool audit_evidence(const Json& record) {
    bool proven = false;
    for (const Json& line : record["evidence"].items) {
      const bool is_whole = !line["source"].string.empty() && !line["evidence"].string.empty() &&
                            !line["observed_at"].string.empty() && line["fence"].integer > 0;
      require(is_whole, fmt::format("a line of its evidence lacks something: {} {} {} fence {}, {}",
                                    line["source"].string, line["evidence"].string,
                                    line["observed_at"].string, line["fence"].integer,
                                    line["reason"].string));
      if (!line["applied"].boolean) {
        books_.kept += line["before"].string == "in_progress" ? 1 : 0;
        continue;
      }
      if (line["after"].string == "unknown") continue;  // How it became so, by its lease's end.
      // Of an attempt that was proven not to have run, no answer ever comes.
      require(line["before"].string == "unknown", "evidence ended " + line["before"].string);
      proven = true;
      books_.found_absent += line["after"].string == "failed_retryable" ? 1 : 0;
      ++(line["source"].string == "event:bank" ? books_.by_event : books_.by_question);
    }
    return proven;
  }

  void require(bool holds, const std::string& what) {
    if (!holds) books_.violations.push_back(key_ + ": " + what);
  }

  const Bank& bank_;
  std::map<std::string, std::vector<std::string>> charges_;
  std::string key_;
  Books books_;
};

class Day : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  enum class Blow : std::uint8_t { kills_gateway, kills_worker, ends_queries, mends_queries };

  bool has_worker() const { return std::get<0>(GetParam()) != "sqlite"; }
  bool shows_late() const { return std::get<1>(GetParam()) == "shown_late"; }

  void arm(const Provider& provider) const {
    const auto each = [&](std::string_view faults, double chance, unsigned number) {
      provider.arm_by_chance(faults, chance * scale_.faults, seed_ + number);
    };
    // 5 % of the answers are lost, 2 % of the events; half of these are of the same payments,
    // because only a question can settle those. 1 % are lost before anything was charged.
    each("drop-after", 0.04, 1);
    each("drop-after,lose-webhook", 0.01, 2);
    each("lose-webhook", 0.01, 3);
    each("repeat-webhook", 0.02, 4);
    each("early-webhook", 0.005, 5);
    each("late-webhook=700", 0.005, 6);
    each("drop-before", 0.01, 7);
    if (shows_late()) provider.queries(fmt::format("shown-after={}", scale_.shown_after.count()));
  }

  /// When which blow falls: behind so many payments. The last two fall when all have begun.
  std::multimap<int, Blow> script(std::mt19937& random) const {
    std::multimap<int, Blow> all{{scale_.payments * 3 / 10, Blow::ends_queries},
                                 {scale_.payments * 5 / 10, Blow::mends_queries},
                                 {scale_.payments, Blow::kills_gateway}};
    const auto somewhere = [&] { return static_cast<int>(random() % unsigned(scale_.payments)); };
    for (int i = 1; i < scale_.kills; ++i) all.emplace(somewhere(), Blow::kills_gateway);
    for (int i = 0; has_worker() && i < scale_.kills; ++i) {
      all.emplace(somewhere(), Blow::kills_worker);
    }
    return all;
  }

  void strike(Bank& bank, Whereabouts& whereabouts, Blow blow) {
    switch (blow) {
      case Blow::kills_gateway:
        bank.gateway().kill();
        whereabouts.publish({});
        bank.restart_gateway();
        ASSERT_TRUE(bank.running()) << bank.gateway().process().output();
        return whereabouts.publish(bank.gateway().address());
      case Blow::kills_worker:
        bank.worker().signal(SIGKILL);
        bank.worker().wait();
        return bank.start_worker();
      case Blow::ends_queries:
        return bank.provider().queries("status=503");
      case Blow::mends_queries:
        return bank.provider().queries("status=0");
    }
  }

  void live_through(Bank& bank, Whereabouts& whereabouts, std::mt19937& random) {
    for (const auto& [at, blow] : script(random)) {
      whereabouts.wait_for_total(at);
      ::poll(nullptr, 0, static_cast<int>(random() % 3));  // Anywhere inside a request.
      ASSERT_NO_FATAL_FAILURE(strike(bank, whereabouts, blow));
    }
  }

  void report(const Bank& bank, const Books& books, double seconds) const {
    const auto state_of = [&](const char* target) {
      return send_once(bank.provider().address(), {.method = "GET", .target = target}).body;
    };
    fmt::print(
        "day {} {}: seed={} payments={} clients={} kills={}+{} seconds={:.1f}\n"
        "  charged={} not_executed={} never_came={} violations={}\n"
        "  answered_unknown={} settled_by_question={} settled_by_event={} found_absent={} kept={}\n"
        "  {}\n  {}\n",
        std::get<0>(GetParam()), std::get<1>(GetParam()), seed_, scale_.payments, clients,
        scale_.kills, has_worker() ? scale_.kills : 0, seconds, books.charged, books.not_executed,
        books.never_came, books.violations.size(), books.doubted, books.by_question, books.by_event,
        books.found_absent, books.kept, state_of("/webhooks"), state_of("/faults"));
  }

  const Scale scale_;
  const unsigned seed_ = seed_of_this_run();
};

TEST_P(Day, V14_V19_V29_ends_without_an_operator_and_the_banks_books_are_ours) {
  IDEM_NEED_PROGRAM("idem-crash");
  const auto begun = std::chrono::steady_clock::now();
  fmt::print("seed={}\n", seed_);
  std::mt19937 random(seed_);
  Bank bank({.store = std::get<0>(GetParam()),
             .grace = shows_late() ? scale_.grace_when_late : milliseconds(1'000),
             .lease = milliseconds(3'000),
             .retry_max = milliseconds(2'000)});
  ASSERT_TRUE(bank.running()) << bank.gateway().process().output();
  if (has_worker()) bank.start_worker();
  arm(bank.provider());

  auto payments = make_payments(scale_.payments, random);
  Whereabouts whereabouts;
  whereabouts.publish(bank.gateway().address());
  Clients all(payments, whereabouts, seed_);
  live_through(bank, whereabouts, random);
  if (HasFatalFailure()) whereabouts.end();
  all.join();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(bank.wait_until_settled(patience + scale_.grace_when_late))
      << bank.gateway().process().output();

  const Books books = Auditor(bank).audit(payments);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  report(bank, books, taken.count());
  for (const auto& violation : books.violations) ADD_FAILURE() << violation;
  for (const auto& answer : all.strange()) ADD_FAILURE() << answer;
  EXPECT_EQ(bank.provider().ledger().effects, books.charged);
  EXPECT_GT(books.doubted, 0);
  const Json report = bank.compared();
  EXPECT_TRUE(report["complete"].boolean);
  EXPECT_EQ(report["differences"].integer, 0);
  EXPECT_EQ(report["counts"]["undecided"].integer, 0);
  EXPECT_EQ(report["counts"]["agree"].integer, books.charged + books.not_executed);
}

INSTANTIATE_TEST_SUITE_P(Bank, Day,
                         testing::Combine(testing::Values("sqlite", "postgres"),
                                          testing::Values("shown_at_once", "shown_late")),
                         [](const auto& named) {
                           return std::get<0>(named.param) + "_" + std::get<1>(named.param);
                         });

}  // namespace
}  // namespace idem::test
