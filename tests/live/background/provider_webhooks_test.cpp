#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/scripted_upstream.hpp"
#include "support/webhook_signer.hpp"

namespace idem::test {
namespace {

TEST(TheSigner, signs_the_example_of_the_specification) {
  EXPECT_EQ(webhook_signature(webhook_example_secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
                              R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

/// A provider whose events a second one receives, judges and, when armed, refuses.
class TheProvidersWebhooks : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(secret()) << webhook_example_secret << '\n';
    receiver_ = std::make_unique<Provider>(
        "127.0.0.1:0", std::vector<std::string>{"--inbox-secret-file", secret()});
    sender_ = make_sender(receiver_->address() + "/inbox");
    ASSERT_TRUE(receiver_->running());
    ASSERT_TRUE(sender_->running());
  }

  std::string secret() const { return dir_.path() / "secret"; }

  std::unique_ptr<Provider> make_sender(const std::string& receiver) const {
    return std::make_unique<Provider>(
        "127.0.0.1:0", std::vector<std::string>{"--webhook-url", "http://" + receiver,
                                                "--webhook-secret-file", secret()});
  }

  static Json read(const Provider& provider, const std::string& target) {
    const auto answer = send_once(provider.address(), {.method = "GET", .target = target});
    return parse_json(answer.body).value_or(Json{});
  }

  /// The sender's counts, once nothing is under way any more.
  Json settled() const {
    const auto give_up = std::chrono::steady_clock::now() + patience;
    for (;;) {
      auto counts = read(*sender_, "/webhooks");
      if (counts["under_way"].integer == 0) return counts;
      if (std::chrono::steady_clock::now() > give_up) return {};
    }
  }

  Json inbox() const { return read(*receiver_, "/inbox"); }
  Response ask(std::string_view key, std::string_view faults = {}) const {
    return send_once(sender_->address(), charge(key, faults));
  }

  const TempDir dir_;
  std::unique_ptr<Provider> receiver_;
  std::unique_ptr<Provider> sender_;
};

TEST_F(TheProvidersWebhooks, report_a_charge_with_a_signature) {
  ScriptedUpstream receiver(ScriptedUpstream::answer_all);
  const auto sender = make_sender(receiver.address() + "/hooks?from=provider");
  const auto made = send_once(sender->address(), with(charge("k \"1\""), "Idem-Operation", "op-7"));
  ASSERT_TRUE(receiver.wait_for_requests(1));
  const auto event = parse_request(receiver.received().at(0));
  ASSERT_TRUE(event);
  const auto get = [&](std::string_view name) {
    return find_field(event->head.fields, name).value_or("");
  };
  EXPECT_EQ(event->method() + event->target(), "POST/hooks?from=provider");
  EXPECT_EQ(get("Host"), receiver.address());
  EXPECT_EQ(get("Content-Type"), "application/json");
  EXPECT_TRUE(get("webhook-id").starts_with("msg_"));
  EXPECT_NEAR(std::atof(get("webhook-timestamp").c_str()), std::time(nullptr), 60.0);
  EXPECT_EQ(get("webhook-signature"), webhook_signature(webhook_example_secret, get("webhook-id"),
                                                        get("webhook-timestamp"), event->body));
  const auto body = parse_json(event->body);
  const auto answer = parse_json(made.body);
  ASSERT_TRUE(body && answer) << event->body;
  EXPECT_EQ((*body)["type"].string, "charge.succeeded");
  const auto& data = (*body)["data"];
  EXPECT_EQ(data["id"].string, (*answer)["id"].string);
  EXPECT_EQ(data["nonce"].string, (*answer)["nonce"].string);
  EXPECT_EQ(data["amount"].integer, 1250);
  EXPECT_EQ(data["key"].string, "k \"1\"");
  EXPECT_EQ(data["operation"].string, "op-7");
}

TEST_F(TheProvidersWebhooks, report_every_charge_and_nothing_else) {
  ask("charged");
  ask("lost answer", "drop-after");
  ask("refused", "refuse=500");
  ask("unheard", "drop-before");
  auto refund = charge("refund");
  refund.target = "/refunds";
  send_once(sender_->address(), refund);
  EXPECT_EQ(settled()["delivered"].integer, 3);
  const auto judged = inbox();
  EXPECT_EQ(judged["messages"].integer, 3);
  EXPECT_EQ(judged["rejected"].integer, 0);
  int refunds = 0;
  for (const auto& [id, message] : judged["ids"].members) {
    refunds += message["type"].string == "refund.succeeded" ? 1 : 0;
  }
  EXPECT_EQ(refunds, 1);
}

TEST_F(TheProvidersWebhooks, come_again_until_the_receiver_accepts_them) {
  receiver_->arm("500-before", 1, "/inbox");
  receiver_->arm("drop-after", 1, "/inbox");
  receiver_->arm("status=302", 1, "/inbox");
  ask("k");
  const auto counts = settled();
  EXPECT_EQ(counts["attempts"].integer, 4);
  EXPECT_EQ(counts["delivered"].integer, 1);
  const auto judged = inbox();
  EXPECT_EQ(judged["messages"].integer, 1) << "every attempt has the same webhook-id";
  EXPECT_EQ(judged["arrivals"].integer, 3);
  EXPECT_EQ(judged["conflicts"].integer, 0);
}

TEST_F(TheProvidersWebhooks, are_lost_or_repeated_as_asked) {
  ask("lost", "lose-webhook");
  auto counts = settled();
  EXPECT_EQ(counts["events"].integer, 1);
  EXPECT_EQ(counts["lost"].integer, 1);
  EXPECT_EQ(counts["attempts"].integer, 0);
  sender_->arm("repeat-webhook");
  ask("twice");
  counts = settled();
  EXPECT_EQ(counts["events"].integer, 2);
  EXPECT_EQ(counts["delivered"].integer, 2);
  const auto judged = inbox();
  EXPECT_EQ(judged["messages"].integer, 1);
  EXPECT_EQ(judged["arrivals"].integer, 2);
}

TEST_F(TheProvidersWebhooks, are_late_as_asked) {
  const auto begin = std::chrono::steady_clock::now();
  ask("k", "late-webhook=150");
  EXPECT_EQ(settled()["delivered"].integer, 1);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(150));
}

TEST_F(TheProvidersWebhooks, follow_the_answer) {
  Connection client(sender_->address());
  client.send(charge("k", "hold=h"));
  ASSERT_TRUE(sender_->wait_held("h", 1));
  EXPECT_EQ(read(*sender_, "/webhooks")["under_way"].integer, 1);
  EXPECT_EQ(read(*sender_, "/webhooks")["attempts"].integer, 0);
  sender_->release("h");
  EXPECT_EQ(client.read_response().status, 201);
  EXPECT_EQ(settled()["delivered"].integer, 1);
}

TEST_F(TheProvidersWebhooks, come_before_the_answer_as_asked) {
  receiver_->arm("hold=h", 1, "/inbox");
  Connection client(sender_->address());
  client.send(charge("k", "early-webhook"));
  ASSERT_TRUE(receiver_->wait_held("h", 1));
  EXPECT_EQ(sender_->effects("k"), 1);
  EXPECT_FALSE(client.socket().readable_within(0)) << "the answer waits for the event";
  receiver_->release("h");
  EXPECT_EQ(client.read_response().status, 201);
  EXPECT_EQ(read(*sender_, "/webhooks")["attempts"].integer, 1);
  EXPECT_EQ(settled()["delivered"].integer, 1);

  receiver_->arm("500-before", 1, "/inbox");
  EXPECT_EQ(ask("again", "early-webhook,repeat-webhook").status, 201);
  EXPECT_EQ(settled()["delivered"].integer, 3);
  EXPECT_EQ(inbox()["messages"].integer, 2);
}

TEST_F(TheProvidersWebhooks, do_not_report_a_replay) {
  const Provider sender("127.0.0.1:0",
                        {"--webhook-url", "http://" + receiver_->address() + "/inbox",
                         "--webhook-secret-file", secret(), "--deduplicate", "5m"});
  send_once(sender.address(), charge("k"));
  EXPECT_EQ(send_once(sender.address(), charge("k")).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(read(sender, "/webhooks")["events"].integer, 1);
}

TEST_F(TheProvidersWebhooks, need_a_receiver_and_a_secret) {
  const auto exit_code = [&](std::vector<std::string> arguments) {
    Process process({.program = built_program("provider"), .arguments = std::move(arguments)});
    return process.exit_code();
  };
  const std::string short_secret = dir_.path() / "short";
  std::ofstream(short_secret) << "whsec_c2hvcnQ=";
  EXPECT_EQ(exit_code({"--webhook-url", "http://127.0.0.1:1/"}), 2);
  EXPECT_EQ(exit_code({"--webhook-secret-file", secret()}), 2);
  EXPECT_EQ(exit_code({"--webhook-url", "https://127.0.0.1:1/", "--webhook-secret-file", secret()}),
            2);
  EXPECT_EQ(exit_code({"--inbox-secret-file", short_secret}), 2);
  EXPECT_EQ(exit_code({"--inbox-secret-file", dir_.path() / "absent"}), 2);
}

}  // namespace
}  // namespace idem::test
