#include <fmt/format.h>

#include "support/admin.hpp"
#include "support/back_off.hpp"

/// Which requests came again, and what they got.
namespace idem::test {
namespace {

class RetriesLive : public Operated {
 protected:
  /// What /v1/retries has for these parameters.
  Json list(const std::string& parameters = "") {
    return read("/v1/retries" + (parameters.empty() ? "" : "?" + parameters))["retries"];
  }
  /// The only misuse, once it was compared: that is behind its answer.
  Json compared() {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const Json misuses = list("outcome=key_misuse");
      EXPECT_EQ(misuses.items.size(), 1U);
      if (misuses.items.size() != 1) return {};
      if (misuses.items[0]["why"].kind == Json::Kind::string) return misuses.items[0];
      if (std::chrono::steady_clock::now() > until) return misuses.items[0];
      back_off();
    }
  }
};

TEST_F(RetriesLive, are_listed_with_what_each_got_and_no_first_request_is) {
  ASSERT_EQ(ask(charge("a")).status, 201);
  ASSERT_EQ(ask(charge("b")).status, 201);
  EXPECT_TRUE(list().items.empty());
  ASSERT_EQ(ask(charge("a")).status, 201);
  Request other = charge("b");
  other.target += "?x=1";
  ASSERT_EQ(ask(other).status, 422);
  const Json all = list();
  ASSERT_EQ(all.items.size(), 2U);
  EXPECT_EQ(all.items[0]["outcome"].string, "key_misuse") << "the newest first";
  const Json& replay = all.items[1];
  EXPECT_EQ(replay["outcome"].string, "replay");
  EXPECT_EQ(replay["status"].integer, 201);
  EXPECT_EQ(replay["client"].string, "127.0.0.1");
  EXPECT_EQ(replay["route"].string, "/{rest...}");
  EXPECT_TRUE(replay["differences"].items.empty());
  const Json record = read("/v1/keys/" + replay["ref"].string);
  EXPECT_EQ(replay["scope"].string, record["scope"].string);
  EXPECT_EQ(list("ref=" + replay["ref"].string).items.size(), 1U);
}

TEST_F(RetriesLive, a_misuse_is_shown_as_a_masked_difference) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  Request other = charge("k");
  other.target += "?card=4242";
  ASSERT_EQ(ask(other).status, 422);
  const Json misuse = compared();
  ASSERT_EQ(misuse["differences"].items.size(), 1U) << misuse["why"].string;
  const Json& difference = misuse["differences"].items[0];
  EXPECT_EQ(difference["part"].string, "query");
  EXPECT_EQ(difference["stored"].string, "absent");
  EXPECT_EQ(difference["sent"].string, "9 bytes");
  EXPECT_EQ(get("/v1/retries").raw.find("4242"), std::string::npos);
}

TEST_F(RetriesLive, a_large_misuse_is_listed_and_not_compared) {
  const std::string large = R"({"amount":1,"note":")" + std::string(5'000, 'x') + "\"}";
  ASSERT_EQ(ask(charge("k", "", large)).status, 201);
  ASSERT_EQ(ask(charge("k", "", large + " ")).status, 201) << "white space does not count";
  Request other = charge("k", "", large);
  other.target += "?x=1";
  ASSERT_EQ(ask(other).status, 422);
  ASSERT_EQ(ask(charge("k", "", "{}")).status, 422);
  const Json misuses = list("outcome=key_misuse");
  ASSERT_EQ(misuses.items.size(), 2U);
  EXPECT_EQ(misuses.items[1]["why"].kind, Json::Kind::null);
}

TEST_F(RetriesLive, of_an_unknown_record_say_so) {
  ASSERT_EQ(ask(charge("k", "drop-after")).status, 502);
  ASSERT_EQ(ask(charge("k")).status, 409);
  const Json all = list("outcome=unknown");
  ASSERT_EQ(all.items.size(), 1U);
  EXPECT_EQ(all.items[0]["status"].integer, 409);
}

TEST_F(RetriesLive, wrong_parameters_are_refused) {
  for (const auto* wrong :
       {"outcome=created", "outcome=", "ref=x", "x=1", "outcome=replay&outcome=replay"}) {
    EXPECT_EQ(get(fmt::format("/v1/retries?{}", wrong)).status, 400) << wrong;
  }
}

}  // namespace
}  // namespace idem::test
