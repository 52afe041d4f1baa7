#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/webhook_signer.hpp"

// The judge of what others send: what arrived how often, what of it counts, and what was not
// theirs.

namespace idem::test {
namespace {

Request message(std::string_view id, std::string_view subject, std::string_view body = "{}") {
  return {.target = "/inbox",
          .fields = {{"webhook-id", std::string(id)},
                     {"ce-type", "order.paid"},
                     {"Ce-Subject", std::string(subject)},
                     {"ce-source", "/orders"}},
          .body = std::string(body)};
}

class TheInbox : public testing::Test {
 protected:
  explicit TheInbox(const std::vector<std::string>& flags = {}) : provider_("127.0.0.1:0", flags) {}

  Response send(const Request& request) const { return send_once(provider_.address(), request); }
  Json read(const std::string& query = {}) const {
    const auto answer = send({.method = "GET", .target = "/inbox" + query});
    return parse_json(answer.body).value_or(Json{});
  }

  const Provider provider_;
};

TEST_F(TheInbox, gives_each_id_one_effect_and_counts_its_arrivals) {
  EXPECT_EQ(send(message("m1", "order-7")).status, 200);
  EXPECT_EQ(send(message("m1", "order-7")).status, 200);
  EXPECT_EQ(send(message("m2", "order-8")).status, 200);
  const auto all = read();
  EXPECT_EQ(all["messages"].integer, 2);
  EXPECT_EQ(all["arrivals"].integer, 3);
  EXPECT_EQ(all["rejected"].integer, 0);
  EXPECT_EQ(all["conflicts"].integer, 0);
  EXPECT_EQ(all["ids"]["m1"]["arrivals"].integer, 2);
  EXPECT_EQ(all["ids"]["m1"]["type"].string, "order.paid");
  EXPECT_EQ(all["ids"]["m2"]["subject"].string, "order-8");
  const auto one = read("?id=m1");
  EXPECT_EQ(one["effects"].integer, 1);
  EXPECT_EQ(one["arrivals"].integer, 2);
  EXPECT_EQ(one["fields"]["ce-source"].string, "/orders");
  EXPECT_EQ(read("?id=absent")["effects"].integer, 0);
}

TEST_F(TheInbox, lists_a_subjects_messages_as_they_arrived_first) {
  for (const auto* id : {"z", "a", "z", "m", "a"}) send(message(id, "order 7"));
  send(message("other", "order-8"));
  std::string order;
  for (const auto& id : read("?subject=order%207")["ids"].items) order += id.string;
  EXPECT_EQ(order, "zam");
  EXPECT_TRUE(read("?subject=none")["ids"].items.empty());
}

TEST_F(TheInbox, sees_an_id_that_comes_back_with_another_body) {
  send(message("m", "s", R"({"total":1})"));
  EXPECT_EQ(send(message("m", "s", R"({"total":2})")).status, 409);
  EXPECT_EQ(send(message("m", "s", R"({"total":1})")).status, 200);
  EXPECT_EQ(read()["conflicts"].integer, 1);
  EXPECT_EQ(read()["messages"].integer, 1);
  EXPECT_EQ(read("?id=m")["conflicts"].integer, 1);
}

TEST_F(TheInbox, refuses_a_message_without_an_id) {
  EXPECT_EQ(send(without(message("m", "s"), "webhook-id")).status, 400);
  EXPECT_EQ(read()["rejected"].integer, 1);
  EXPECT_EQ(read()["arrivals"].integer, 0);
}

TEST_F(TheInbox, is_no_charge) {
  provider_.arm("500-before");
  EXPECT_EQ(send(message("m", "s")).status, 200) << "only what names its path is armed for it";
  EXPECT_EQ(provider_.ledger().arrivals, 0);
  EXPECT_EQ(send(charge("k")).status, 500);
  send({.method = "DELETE", .target = "/inbox"});
  EXPECT_EQ(read()["messages"].integer, 0);
}

TEST_F(TheInbox, loses_messages_and_answers_as_armed) {
  const auto armed = [&](std::string_view faults) {
    provider_.arm(faults, 1, "/inbox");
    return send(message(faults, "s"));
  };
  EXPECT_EQ(armed("drop-before").trouble, "closed");
  const auto refused = armed("refuse=503,header=Retry-After:2");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.get("Retry-After"), "2");
  EXPECT_EQ(read()["messages"].integer, 0);
  EXPECT_EQ(armed("drop-after").trouble, "closed");
  EXPECT_EQ(armed("500-after").status, 500);
  EXPECT_EQ(read()["messages"].integer, 2);
  EXPECT_EQ(send(message("drop-after", "s")).status, 200);
  EXPECT_EQ(read()["ids"]["drop-after"]["arrivals"].integer, 2);
}

TEST_F(TheInbox, holds_a_message_until_it_is_released) {
  provider_.arm("gate-before=h", 1, "/inbox");
  Connection sender(provider_.address());
  sender.send(message("m", "s"));
  ASSERT_TRUE(provider_.wait_held("h", 1));
  EXPECT_EQ(read()["messages"].integer, 0);
  provider_.release("h");
  EXPECT_EQ(sender.read_response().status, 200);
  EXPECT_EQ(read()["messages"].integer, 1);
}

class TheInboxWithASecret : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = dir_.path() / "secret";
    std::ofstream(file) << webhook_example_secret;
    provider_ = std::make_unique<Provider>("127.0.0.1:0",
                                           std::vector<std::string>{"--inbox-secret-file", file});
    ASSERT_TRUE(provider_->running());
  }

  /// Signed at this many seconds from now.
  static Request signed_message(std::string_view body = "{}", int seconds = 0) {
    const auto time = std::to_string(std::time(nullptr) + seconds);
    auto request = with(message("m", "s", body), "webhook-timestamp", time);
    return with(request, "webhook-signature",
                webhook_signature(webhook_example_secret, "m", time, body));
  }

  int send(const Request& request) const { return send_once(provider_->address(), request).status; }

  const TempDir dir_;
  std::unique_ptr<Provider> provider_;
};

TEST_F(TheInboxWithASecret, accepts_signed_messages) {
  EXPECT_EQ(send(signed_message()), 200);
  auto rotated = signed_message();
  rotated.fields.back().value = "v1,other v1a,x " + rotated.fields.back().value;
  EXPECT_EQ(send(rotated), 200) << "one of several signatures is enough";
  EXPECT_EQ(send(signed_message("{}", -200)), 200);
}

TEST_F(TheInboxWithASecret, refuses_unsigned_messages) {
  auto altered = signed_message();
  altered.body = "[]";
  EXPECT_EQ(send(altered), 401);
  auto renamed = signed_message();
  renamed.fields.front().value = "n";
  EXPECT_EQ(send(renamed), 401);
  EXPECT_EQ(send(message("m", "s")), 401);
  EXPECT_EQ(send(without(signed_message(), "webhook-signature")), 401);
  EXPECT_EQ(send(without(signed_message(), "webhook-timestamp")), 401);
  EXPECT_EQ(send(signed_message("{}", -400)), 401) << "too old";
  EXPECT_EQ(send(signed_message("{}", 400)), 401) << "from the future";
  const auto other = webhook_signature("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "m",
                                       *find_field(altered.fields, "webhook-timestamp"), "{}");
  auto foreign = altered;
  foreign.body = "{}";
  foreign.fields.back().value = other;
  EXPECT_EQ(send(foreign), 401) << "another secret";
  const auto answer = send_once(provider_->address(), {.method = "GET", .target = "/inbox"});
  const auto counts = parse_json(answer.body);
  ASSERT_TRUE(counts);
  EXPECT_EQ((*counts)["rejected"].integer, 8);
  EXPECT_EQ((*counts)["arrivals"].integer, 0);
}

}  // namespace
}  // namespace idem::test
