// Protocol §10: a route that lets the content of an encoded body count.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/gzip.hpp"
#include "support/json.hpp"
#include "support/live.hpp"

namespace idem::test {
namespace {

class EncodedBodies : public Live {
 protected:
  std::vector<std::string> flags() const override {
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << "routes: [{match: {path: /charges}, fingerprint: {decode: [gzip]}}]\n";
    return {"--config", file};
  }

  static Request sent(std::string body) {
    return with(charge("k", "", std::move(body)), "Content-Encoding", "gzip");
  }
  void expect_doubt(const Request& request) {
    const auto refused = ask(request);
    EXPECT_TRUE(is_problem(refused, 422, "key_reused"));
    EXPECT_EQ(json_text(refused.body, "retry"), "never") << refused.body;
  }
};

TEST_F(EncodedBodies, S10_json_compressed_a_second_later_replays) {
  const std::string json = R"({"amount":1250})";
  const auto first = ask(sent(gzipped(json, 1)));
  ASSERT_EQ(first.status, 201) << first.raw;
  EXPECT_TRUE(replays(first, ask(sent(gzipped(json, 2)))));
  EXPECT_TRUE(replays(first, ask(sent(gzipped(json, 2))))) << "from memory";
  const auto other = ask(sent(gzipped(R"({"amount":9})", 2)));
  EXPECT_TRUE(is_problem(other, 422, "key_reused"));
  EXPECT_EQ(json_text(other.body, "retry"), "new_key_safe");
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(EncodedBodies, S10_what_a_loop_may_not_decode_another_thread_does) {
  const std::string json = "{\"amount\":1250" + std::string(400'000, ' ') + "}";
  const auto first = ask(sent(gzipped(json, 1)));
  ASSERT_EQ(first.status, 201) << first.raw;
  EXPECT_TRUE(replays(first, ask(sent(gzipped(R"({"amount":1250})", 2)))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(EncodedBodies, S05_no_new_key_is_advised_where_a_body_could_not_be_decoded) {
  const std::string json = R"({"amount":1250})";
  ASSERT_EQ(ask(sent(gzipped(json))).status, 201);
  expect_doubt(sent(gzipped(json) + "x"));
  expect_doubt(sent(gzipped(json) + gzipped(json)));
  expect_doubt(sent(gzipped(json).substr(0, 20)));
  expect_doubt(sent(gzipped(json + std::string(2UL << 20, ' '))));  // Above limits.request_body.
  expect_doubt(with(sent(gzipped(gzipped(json))), "Content-Encoding", "gzip"));
  EXPECT_EQ(effects("k"), 1);
}

}  // namespace
}  // namespace idem::test
