#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "crash/judge.hpp"
#include "crash/shared_places.hpp"
#include "support/admin.hpp"
#include "support/encrypted.hpp"
#include "support/live.hpp"

/// `idem store copy`: from each kind of store to another, over kill -9 between its steps, and from
/// a store that a gateway serves from. The provider's ledger is the judge.
namespace idem::test {
namespace {

Ran copy(const std::string& from, const std::string& to, std::vector<std::string> flags = {},
         const std::string& crash_at = {}) {
  std::vector<std::string> words{"store", "copy", from, to};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<std::string> environment;
  if (!crash_at.empty()) environment.push_back("IDEM_CRASH_AT=" + crash_at);
  return run_program(built_program(crash_at.empty() ? "idem" : "idem-crash"), std::move(words),
                     std::move(environment));
}

Json report_of(const Ran& ran) {
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  const auto begin = ran.output.find('{');
  if (begin == std::string::npos) return {};
  return parse_json(ran.output.substr(begin, ran.output.find('\n', begin) - begin))
      .value_or(Json{});
}

class StoreCopy : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    IDEM_NEED_PROGRAM("idem-crash");
  }
  std::unique_ptr<Gateway> gateway_on(const std::string& url,
                                      std::vector<std::string> flags = {}) const {
    return std::make_unique<Gateway>(GatewayOptions{
        .upstream = provider_.address(), .store_url = url, .flags = std::move(flags)});
  }
  std::string file_url(const std::string& kind, const std::string& name) const {
    return kind + ":" + (dir_.path() / name).string();
  }
  /// Charges `count` new keys.
  void charge_new(const Gateway& gateway, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = fmt::format("key-{}", answers_.size());
      const auto answer = send_once(gateway.address(), charge(key));
      EXPECT_EQ(answer.status, 201) << answer.raw;
      answers_.emplace(key, answer);
    }
  }
  /// Every key so far is answered as it was, and was done once.
  void expect_all_replayed(const Gateway& gateway) {
    for (const auto& [key, first] : answers_) {
      EXPECT_TRUE(replays(first, send_once(gateway.address(), charge(key)))) << key;
      EXPECT_EQ(provider_.effects(key), 1) << key;
    }
  }
  static void expect_refused(const Gateway& gateway, std::string_view why) {
    auto& process = const_cast<Gateway&>(gateway).process();
    EXPECT_EQ(process.exit_code(), 2) << process.output();
    EXPECT_NE(process.output().find(why), std::string::npos) << process.output();
  }

  TempDir dir_;
  Provider provider_;
  std::map<std::string, Response> answers_;
};

// Each kind is a source and a target once, and what came through all of them is still replayed.
TEST_F(StoreCopy, a_chain_of_copies_that_are_killed_loses_and_repeats_nothing) {
  const std::vector<std::string> kinds{"postgres", "mysql", "redis", "dynamodb"};
  std::vector<std::unique_ptr<SharedPlace>> places;
  std::vector<std::string> urls{file_url("embedded", "first")};
  for (const auto& kind : kinds) {
    places.push_back(make_shared_place(kind));
    urls.push_back(places.back()->url());
  }
  urls.push_back(file_url("sqlite", "idem.db"));
  urls.push_back(file_url("embedded", "last"));
  auto gateway = gateway_on(urls.front());
  ASSERT_TRUE(gateway->running());
  charge_new(*gateway, 120);
  for (std::size_t hop = 0; hop + 1 < urls.size(); ++hop) {
    const auto& from = urls[hop];
    const auto& to = urls[hop + 1];
    SCOPED_TRACE(from + " to " + to);
    EXPECT_EQ(gateway->terminate(), 0);
    const bool is_slow =
        to.starts_with("dynamodb");  // Each run waits until the one before is over.
    for (const char* const point :
         {"copy_put", "copy_closed", "copy_compared", "copy_moved", "copy_finished"}) {
      if (is_slow && std::string_view(point) == "copy_compared") continue;
      const Ran killed = copy(from, to, {}, point);
      ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << point << killed.output;
      if (std::string_view(point) == "copy_finished") break;
      auto refused = gateway_on(to);
      expect_refused(*refused, "unfinished copy");
      if (std::string_view(point) == "copy_put") continue;
      refused = gateway_on(from);
      expect_refused(*refused, "were copied to the store");
    }
    const Ran again = copy(from, to);
    EXPECT_EQ(again.exit_code, 0) << again.output;
    EXPECT_NE(again.output.find("finished before"), std::string::npos) << again.output;
    EXPECT_EQ(copy(from, to, {"--undo"}).exit_code, 5);
    auto refused = gateway_on(from);
    expect_refused(*refused, "were copied to the store");
    gateway = gateway_on(to);
    ASSERT_TRUE(gateway->running()) << gateway->process().output();
    expect_all_replayed(*gateway);
    charge_new(*gateway, 20);
  }
}

// The warnings of a start would look like the reason.
TEST_F(StoreCopy, a_complaint_stands_alone_and_warnings_come_with_the_copy) {
  const auto place = make_shared_place("postgres");
  for (const std::string& url : {place->url(), file_url("sqlite", "other.db")}) {
    const auto gateway = gateway_on(url);
    ASSERT_TRUE(gateway->running());
    EXPECT_EQ(gateway->terminate(), 0);
  }
  const Ran refused = copy(place->url(), file_url("sqlite", "other.db"));
  EXPECT_EQ(refused.exit_code, 5) << refused.output;
  EXPECT_TRUE(refused.output.contains("it is a store of its own")) << refused.output;
  EXPECT_FALSE(refused.output.contains("data_checksums")) << refused.output;
  const Ran made = copy(place->url(), file_url("sqlite", "new.db"));
  EXPECT_EQ(made.exit_code, 0) << made.output;
  EXPECT_TRUE(made.output.contains("warning: data_checksums is off")) << made.output;
}

/// What serves goes on until the copy is made, and each client goes on behind it.
class CopyUnderLoad : public StoreCopy, public testing::WithParamInterface<std::string> {};

TEST_P(CopyUnderLoad, no_key_is_done_twice_while_the_store_of_a_serving_gateway_is_copied) {
  const unsigned seed = seed_of_this_run();
  SCOPED_TRACE(fmt::format("IDEM_SEED={}", seed));
  const auto place = make_shared_place(GetParam());
  const std::string to = file_url("embedded", "copy");
  auto before = gateway_on(place->url(), short_lease());
  ASSERT_TRUE(before->running());
  provider_.arm_by_chance("slow=30", 0.3, seed);
  Judge judge;
  std::atomic<bool> ends{false};
  std::atomic<int> sent{0};
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      for (int number = 0; !ends; ++number) {
        const std::string key = fmt::format("k{}-{}", client, number);
        judge.sent(key, charge(key));
        Response answer;
        do {  // As a client that is asked to come back.
          answer = send_once(before->address(), charge(key));
          judge.answered(key, answer);
          if (!is_definite(answer)) ::poll(nullptr, 0, 10);
        } while (!is_definite(answer) && !ends);
        ++sent;
        sent.notify_all();
      }
    });
  }
  const auto wait_for_more = [&](int more) {
    const int until = sent + more;
    for (int seen = sent; seen < until; seen = sent) sent.wait(seen);
  };
  wait_for_more(200);
  const auto prepared = report_of(copy(place->url(), to, {"--prepare", "--json"}));
  EXPECT_FALSE(prepared["finished"].boolean);
  EXPECT_GT(prepared["records"].integer, 0);
  expect_refused(*gateway_on(to), "unfinished copy");
  wait_for_more(50);
  EXPECT_EQ(copy(place->url(), to, {}, "copy_put").exit_code, 128 + SIGKILL);
  wait_for_more(50);
  const auto report = report_of(copy(place->url(), to, {"--json"}));
  EXPECT_TRUE(report["finished"].boolean);
  EXPECT_TRUE(report["from_closed"].boolean);
  ends = true;
  for (auto& client : clients) client.join();
  before->kill();
  auto after = gateway_on(to, short_lease());
  ASSERT_TRUE(after->running()) << after->process().output();
  const auto verdict = judge.conclude(after->address(), provider_);
  EXPECT_GE(verdict.keys, 300);
  EXPECT_TRUE(verdict.violations.empty()) << fmt::format("{}", fmt::join(verdict.violations, "\n"));
}

INSTANTIATE_TEST_SUITE_P(Stores, CopyUnderLoad,
                         testing::Values("postgres", "mysql", "redis", "dynamodb"),
                         [](const auto& kind) { return kind.param; });

class FileCopy : public StoreCopy, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Stores, FileCopy, testing::Values("sqlite", "embedded"),
                         [](const auto& kind) { return kind.param; });

TEST_P(FileCopy, beside_a_gateway_it_is_prepared_and_without_it_finished) {
  const std::string from = file_url(GetParam(), "from");
  const std::string to = file_url(GetParam(), "to");
  auto gateway = gateway_on(from);
  ASSERT_TRUE(gateway->running());
  charge_new(*gateway, 150);
  const auto early = copy(from, to);
  EXPECT_EQ(early.exit_code, 5) << early.output;
  EXPECT_NE(early.output.find("--prepare"), std::string::npos) << early.output;
  auto report = report_of(copy(from, to, {"--prepare", "--json"}));
  EXPECT_EQ(report["put"].integer, 150);
  charge_new(*gateway, 50);
  report = report_of(copy(from, to, {"--prepare", "--json"}));
  EXPECT_EQ(report["put"].integer, 50);
  EXPECT_EQ(report["records"].integer, 200);
  expect_all_replayed(*gateway);
  EXPECT_EQ(gateway->terminate(), 0);
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("copying"), std::string::npos) << entry.path();
  }
  report = report_of(copy(from, to, {"--json"}));
  EXPECT_TRUE(report["finished"].boolean);
  EXPECT_EQ(report["records"].integer, 200);
  EXPECT_EQ(report["digest"].string.size(), 64U);
  expect_refused(*gateway_on(from), "were copied to the store " + report["store_id"].string);
  gateway = gateway_on(to);
  ASSERT_TRUE(gateway->running()) << gateway->process().output();
  expect_all_replayed(*gateway);
}

TEST_P(FileCopy, secrets_encryption_and_the_audit_go_with_it) {
  const auto secret = [&](const std::string& name) { return secret_file(dir_.path(), name); };
  const std::vector<std::string> sealing{"--encryption-secret-file", secret("sealing"),
                                         "--encryption-key-per-scope"};
  std::vector<std::string> first = sealing;
  first.insert(first.end(), {"--secret-file", secret("old")});
  std::vector<std::string> both = sealing;
  both.insert(both.end(), {"--secret-file", secret("new"), "--secret-file", secret("old")});
  const std::string from = file_url(GetParam(), "from");
  const std::string to = file_url(GetParam(), "to");
  auto gateway = gateway_on(from, first);
  ASSERT_TRUE(gateway->running()) << gateway->process().output();
  charge_new(*gateway, 5);
  EXPECT_EQ(gateway->terminate(), 0);
  gateway = gateway_on(from, both);
  ASSERT_TRUE(gateway->running()) << gateway->process().output();
  charge_new(*gateway, 5);
  const auto audit = [&] {
    return run_program(built_program("idem"),
                       {"audit", "verify", "--admin-url", "http://" + gateway->admin()});
  };
  const Ran before = audit();
  EXPECT_EQ(before.exit_code, 0) << before.output;
  EXPECT_EQ(gateway->terminate(), 0);
  EXPECT_EQ(report_of(copy(from, to, {"--json"}))["records"].integer, 10);
  auto refused = gateway_on(to, first);
  EXPECT_FALSE(refused->running()) << "without the secret of five records";
  gateway = gateway_on(to, both);
  ASSERT_TRUE(gateway->running()) << gateway->process().output();
  expect_all_replayed(*gateway);
  const Ran after = audit();
  EXPECT_EQ(after.exit_code, 0) << after.output;
  charge_new(*gateway, 1);
}

TEST_P(FileCopy, a_source_that_is_kept_is_usable) {
  const std::string from = file_url(GetParam(), "from");
  const std::string to = file_url("sqlite", "to");
  auto gateway = gateway_on(from);
  ASSERT_TRUE(gateway->running());
  charge_new(*gateway, 10);
  EXPECT_EQ(gateway->terminate(), 0);
  const auto report = report_of(copy(from, to, {"--keep-source", "--json"}));
  EXPECT_TRUE(report["finished"].boolean);
  EXPECT_FALSE(report["from_closed"].boolean);
  gateway = gateway_on(from);
  ASSERT_TRUE(gateway->running()) << gateway->process().output();
  expect_all_replayed(*gateway);
}

TEST_P(FileCopy, what_a_killed_gateway_left_is_settled_as_its_next_start_would) {
  const std::string from = file_url(GetParam(), "from");
  auto gateway = gateway_on(from);
  ASSERT_TRUE(gateway->running());
  charge_new(*gateway, 3);
  std::thread client([&] { (void)send_once(gateway->address(), charge("held", "hold=h")); });
  ASSERT_TRUE(provider_.wait_held("h", 1));
  gateway->kill();
  client.join();
  provider_.release("h");
  const std::string to = file_url("embedded", "to");
  EXPECT_EQ(report_of(copy(from, to, {"--json"}))["records"].integer, 4);
  gateway = gateway_on(to);
  ASSERT_TRUE(gateway->running()) << gateway->process().output();
  EXPECT_TRUE(is_problem(send_once(gateway->address(), charge("held")), 409, "outcome_unknown"));
  expect_all_replayed(*gateway);
}

TEST_P(FileCopy, what_cannot_be_copied_is_refused_with_a_sentence) {
  const std::string from = file_url(GetParam(), "from");
  const std::string to = file_url(GetParam(), "to");
  EXPECT_EQ(copy(from, to).exit_code, 4) << "there is none";
  for (const char* const other : {"memory:", "hybrid:?truth=sqlite:/a&fast=sqlite:/b"}) {
    EXPECT_EQ(copy(from, other).exit_code, 2) << other;
  }
  auto gateway = gateway_on(from);
  ASSERT_TRUE(gateway->running());
  charge_new(*gateway, 3);
  EXPECT_EQ(gateway->terminate(), 0);
  gateway = gateway_on(to);
  ASSERT_TRUE(gateway->running());
  EXPECT_EQ(gateway->terminate(), 0);
  const Ran used = copy(from, to);
  EXPECT_EQ(used.exit_code, 5);
  EXPECT_NE(used.output.find("a store of its own"), std::string::npos) << used.output;
  EXPECT_EQ(copy(from, from).exit_code, 5);
  const std::string lost = file_url(GetParam(), "lost");
  EXPECT_EQ(copy(from, lost, {"--undo"}).exit_code, 5) << "it is not closed";
  EXPECT_EQ(copy(from, lost, {}, "copy_closed").exit_code, 128 + SIGKILL);
  EXPECT_EQ(copy(from, lost, {"--undo"}, "copy_undone").exit_code, 128 + SIGKILL);
  expect_refused(*gateway_on(from), "--undo was cut off");
  EXPECT_EQ(copy(from, lost).exit_code, 5);
  EXPECT_EQ(copy(from, lost, {"--undo"}).exit_code, 0);
  gateway = gateway_on(from);
  ASSERT_TRUE(gateway->running()) << gateway->process().output();
  expect_all_replayed(*gateway);
  charge_new(*gateway, 1);
  EXPECT_EQ(gateway->terminate(), 0);
  EXPECT_EQ(copy(from, lost, {}, "copy_closed").exit_code, 128 + SIGKILL);
  const std::string next = file_url(GetParam(), "next");
  const Ran closed = copy(from, next);
  EXPECT_EQ(closed.exit_code, 5) << closed.output;
  const auto at = closed.output.find("--lost-copy ");
  ASSERT_NE(at, std::string::npos) << closed.output;
  const std::string id = closed.output.substr(at + 12, 36);
  EXPECT_EQ(copy(from, next, {"--undo", "--lost-copy", id}).exit_code, 0);
  EXPECT_EQ(copy(from, lost, {}, "copy_closed").exit_code, 128 + SIGKILL);
  EXPECT_EQ(copy(from, next, {"--lost-copy", id}, "copy_moved").exit_code, 128 + SIGKILL);
  EXPECT_EQ(copy(from, next, {"--undo"}).exit_code, 5) << "it is closed for good";
  EXPECT_EQ(copy(from, next).exit_code, 0);
  gateway = gateway_on(next);
  ASSERT_TRUE(gateway->running()) << gateway->process().output();
  expect_all_replayed(*gateway);
}

}  // namespace
}  // namespace idem::test
