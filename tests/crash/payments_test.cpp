#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <random>
#include <thread>

#include "crash/payments_service.hpp"
#include "support/back_off.hpp"

/// The reference application dies by SIGKILL at every point of its golden path, and ends all it
/// began without an operator: one charge for each key, one payment, one receipt.
namespace idem::test {
namespace {

int kills_each() {
  const char* const runs = std::getenv("IDEM_PAYMENTS_KILLS");
  return runs != nullptr ? std::stoi(runs) : 20;
}

struct PaymentPoint {
  std::string name;
  std::string at;         ///< As IDEM_CRASH_AT has it.
  bool in_relay = false;  ///< Behind the answer, in the relay.
};

/// Each transaction passes the settle points once: the reserve with the due flow, then
/// payment_created, charged, finished.
const std::vector<PaymentPoint> payment_points{
    {"before_the_reserve", "reserve_before_commit:1"},
    {"behind_the_reserve", "reserve_after_commit:1"},
    {"before_the_first_phase_commits", "settle_before_commit:2"},
    {"between_phases", "settle_after_commit:2"},
    {"before_the_charge", "dispatch_before_first_byte:1"},
    {"behind_the_charge", "response_head:1"},
    {"before_the_charge_commits", "settle_before_commit:3"},
    {"behind_the_charge_commits", "settle_after_commit:3"},
    {"before_the_answer_commits", "settle_before_commit:4"},
    {"before_the_answer", "settle_after_commit:4"},
    {"in_the_relay_before_it_sends", "dispatch_before_first_byte:2", true},
    {"in_the_relay_behind_the_answer", "response_head:2", true},
};

struct PaymentCase {
  std::string store;
  std::string provider_is;
  PaymentPoint point;
};

std::ostream& operator<<(std::ostream& out, const PaymentCase& one) {
  return out << one.store << ", " << one.provider_is << ", " << one.point.at;
}

std::vector<PaymentCase> payment_cases() {
  std::vector<PaymentCase> all;
  for (const std::string store : {"sqlite", "postgres"}) {
    for (const PaymentPoint& point : payment_points) {
      all.push_back({store, "deduplicates", point});
      // Where nobody is in doubt the others are as good.
      const bool is_in_doubt = point.at.starts_with("dispatch") || point.at == "response_head:1" ||
                               point.at == "settle_before_commit:3" ||
                               point.name == "between_phases";
      if (point.in_relay || !is_in_doubt) continue;
      all.push_back({store, "can-be-asked", point});
      all.push_back({store, "neither", point});
    }
  }
  return all;
}

std::string name_of_payment_case(const testing::TestParamInfo<PaymentCase>& info) {
  std::string provider = info.param.provider_is;
  std::ranges::replace(provider, '-', '_');
  return info.param.store + "_" + provider + "_" + info.param.point.name;
}

class PaymentsKilled : public testing::TestWithParam<PaymentCase> {};

INSTANTIATE_TEST_SUITE_P(At, PaymentsKilled, testing::ValuesIn(payment_cases()),
                         name_of_payment_case);

/// Asks until it is no more under way, here or in an attempt that resumed it meanwhile.
Response settled(const PaymentsService& service, const Request& request) {
  for (;;) {
    Response answer = service.ask(request);
    const auto code = json_text(answer.body, "code");
    if (code != "in_progress" && code != "attempt_released") return answer;
    back_off();
  }
}

TEST_P(PaymentsKilled, V14_V18_V19_T18_nothing_is_charged_twice_and_everything_ends) {
  IDEM_NEED_PROGRAM("payments-crash");
  const auto& [store, provider_is, point] = GetParam();
  PaymentsService service(store, provider_is);
  const int kills = kills_each();
  int answered = 0;
  for (int i = 0; i < kills; ++i) {
    service.start(point.at, point.in_relay);
    ASSERT_FALSE(service.address().empty());
    if (service.ask(service.payment(fmt::format("k{}", i))).status == 201) ++answered;
    ASSERT_EQ(service.process().exit_code(), 128 + SIGKILL) << service.process().output();
  }
  // In the relay, and only there, the client has its answer before.
  if (!point.in_relay) {
    EXPECT_EQ(answered, 0);
  }

  service.start();
  // With a relay, one may die of an older message before it knows of its own request.
  const bool has_begun = point.name != "before_the_reserve" && !point.in_relay;
  // Between phases it has not even been noted that a call would be made.
  const bool is_known = provider_is != "neither" || point.name == "between_phases";
  // Without its client: all that was reserved ends by itself, but for what nobody can know.
  if (has_begun && is_known) {
    EXPECT_TRUE(service.wait_for_receipts(kills));
  }
  int unknown = 0;
  for (int i = 0; i < kills; ++i) {
    const auto request = service.payment(fmt::format("k{}", i));
    const auto answer = settled(service, request);
    const bool is_unknown = is_problem(answer, answer.status, "outcome_unknown");
    if (!is_known && is_unknown) {
      ++unknown;
      continue;
    }
    EXPECT_EQ(answer.status, 201) << answer.raw;
    if (has_begun) {
      EXPECT_EQ(answer.get("Idempotent-Replayed"), "true");
    }
    EXPECT_TRUE(
        is_problem(service.ask(service.payment(fmt::format("k{}", i), 1)), 422, "key_reused"));
  }
  if (is_known) {
    EXPECT_TRUE(service.wait_for_receipts(kills));
  }
  // The messages of a dead relay are delivered once more when its claim is over, and known by their
  // ids.
  EXPECT_TRUE(service.stop_when_all_is_delivered());

  int twice = 0;
  int charged = 0;
  for (const auto& [key, charges] : service.charges()) {
    charged += charges;
    if (charges > 1) ++twice;
  }
  const Json inbox = service.inbox();
  EXPECT_EQ(twice, 0);
  EXPECT_EQ(unknown, is_known ? 0 : kills);
  EXPECT_EQ(charged, !is_known && point.at.starts_with("dispatch") ? 0 : kills);
  EXPECT_EQ(inbox["ids"].members.size(), kills - unknown);
  EXPECT_EQ(inbox["rejected"].integer, 0);
  EXPECT_EQ(inbox["conflicts"].integer, 0);
  EXPECT_EQ(service.count("SELECT count(*) FROM payments WHERE state = 'finished'",
                          "SELECT count(*) FROM payments WHERE state = 'finished'"),
            kills - unknown);
  EXPECT_EQ(service.count("SELECT count(*) FROM payments", "SELECT count(*) FROM payments"), kills);
  fmt::print("kills={} answered_before={} charged={} charged_twice={} unknown={} arrivals={}\n",
             kills, answered, charged, twice, unknown, inbox["arrivals"].integer);
}

class PaymentsUnderLoad : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Stores, PaymentsUnderLoad, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

/// Retries each of its payments, and a refund of it, until they are answered, whatever dies.
void pay_and_refund(int client, int payments, const std::function<std::string()>& address,
                    std::atomic<int>& ended) {
  const auto until_201 = [&](const Request& request) {
    for (;;) {
      const Response answer = send_once(address(), request);
      if (answer.status == 201) return answer;
      if (answer.status == 422 || answer.status == 402) return answer;
      back_off();
    }
  };
  for (int i = 0; i < payments; ++i) {
    const auto key = fmt::format("{}-{}", client, i);
    const auto paid = until_201(PaymentsService::payment(key));
    EXPECT_EQ(paid.status, 201) << paid.raw;
    const auto json = parse_json(paid.body);
    ASSERT_TRUE(json);
    Request refund =
        charge("refund-" + key, {},
               fmt::format(R"({{"payment":"{}","amount":100}})", (*json)["id"].string));
    refund.target = "/refunds";
    const auto refunded = until_201(refund);
    EXPECT_EQ(refunded.status, 201) << refunded.raw;
    ++ended;
  }
}

TEST_P(PaymentsUnderLoad, V17_V19_killed_at_random_each_key_is_charged_and_refunded_once) {
  IDEM_NEED_PROGRAM("payments-crash");
  constexpr int clients = 4;
  constexpr int payments_each = 30;
  const int kills = kills_each();
  const unsigned seed = std::random_device{}();
  fmt::print("seed={}\n", seed);
  std::mt19937 random(seed);
  PaymentsService service(GetParam(), "deduplicates");
  std::mutex mutex;
  std::string address;
  const auto where = [&] {
    const std::lock_guard lock(mutex);
    return address;
  };
  const auto start = [&] {
    service.start();
    const std::lock_guard lock(mutex);
    address = service.address();
  };
  start();
  std::atomic<int> ended = 0;
  std::vector<std::jthread> running;
  for (int client = 0; client < clients; ++client) {
    running.emplace_back([&, client] { pay_and_refund(client, payments_each, where, ended); });
  }
  int killed = 0;
  int last = -1;
  while (killed < kills && ended < clients * payments_each) {
    // After some progress, anywhere in it.
    if (ended == last) {
      std::this_thread::yield();
      continue;
    }
    last = ended;
    for (unsigned spins = random() % 2000; spins > 0; --spins) std::this_thread::yield();
    service.process().signal(SIGKILL);
    service.process().wait();
    ++killed;
    start();
  }
  running.clear();
  EXPECT_TRUE(service.wait_for_receipts(2 * clients * payments_each));
  service.stop();
  int twice = 0;
  int charged = 0;
  for (const auto& [key, charges] : service.charges()) {
    charged += charges;
    if (charges > 1) ++twice;
  }
  EXPECT_EQ(twice, 0);
  EXPECT_EQ(charged, 2 * clients * payments_each);
  const std::string refunded =
      "SELECT count(*) FROM payments WHERE refunded = 100 AND amount = 700";
  EXPECT_EQ(service.count(refunded, refunded), clients * payments_each);
  fmt::print("kills={} keys={} charged={} charged_twice={} receipts={} arrivals={}\n", killed,
             2 * clients * payments_each, charged, twice, service.inbox()["ids"].members.size(),
             service.inbox()["arrivals"].integer);
}

class Payments : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Stores, Payments, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Payments, V17_every_endpoint_that_changes_something_wants_a_key) {
  IDEM_NEED_PROGRAM("payments-crash");
  PaymentsService service(GetParam(), "deduplicates");
  service.start();
  for (const std::string target : {"/payments", "/refunds"}) {
    Request request = without(service.payment("k"), "Idempotency-Key");
    request.target = target;
    EXPECT_TRUE(is_problem(service.ask(request), 400, "key_missing")) << target;
  }
  EXPECT_TRUE(service.charges().empty());
  EXPECT_EQ(service.ask(service.payment("k")).status, 201);
}

TEST_P(Payments, V21_a_declined_card_is_stored_and_replayed_and_the_provider_asked_once) {
  IDEM_NEED_PROGRAM("payments-crash");
  PaymentsService service(GetParam(), "deduplicates");
  service.start();
  Request request = service.payment("k");
  request.body = R"({"amount":5,"currency":"eur","source":"tok_declined"})";
  const auto first = service.ask(request);
  EXPECT_EQ(first.status, 402) << first.raw;
  const auto again = service.ask(request);
  EXPECT_EQ(again.status, 402);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(service.provider().ledger().arrivals, 1);
  EXPECT_EQ(service.provider().ledger().effects, 0);
}

TEST_P(Payments, V20_a_client_that_hangs_up_changes_nothing) {
  IDEM_NEED_PROGRAM("payments-crash");
  PaymentsService service(GetParam(), "deduplicates");
  service.start();
  service.provider().arm("hold=h", 1, "/charges");
  {
    Connection gone(service.address());
    ASSERT_TRUE(gone.send(service.payment("k")));
    ASSERT_TRUE(service.provider().wait_held("h", 1));
  }
  service.provider().release("h");
  EXPECT_TRUE(service.wait_for_receipts(1));
  const auto answer = settled(service, service.payment("k"));
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(service.provider().ledger().effects, 1);
}

}  // namespace
}  // namespace idem::test
