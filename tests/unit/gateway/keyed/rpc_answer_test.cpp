// Protocol §14: which answers a retry of a JSON-RPC call may get under its own id.
#include "gateway/keyed/rpc_answer.hpp"

#include <gtest/gtest.h>

#include <string>

namespace idem::gateway {
namespace {

const std::string call = R"({"jsonrpc":"2.0","method":"pay","id":7})";
const std::string result = R"({"jsonrpc":"2.0","result":"ok","id":7})";

WireAnswer answer(std::vector<Field> fields, std::string body = result) {
  return {200, std::move(fields), std::move(body)};
}
WireAnswer json(std::vector<Field> fields = {}) {
  fields.push_back({"content-type", "application/json; charset=utf-8"});
  return answer(std::move(fields));
}

TEST(RpcAnswer, S14_json_with_the_calls_id_may_be_given_under_another) {
  EXPECT_TRUE(answers_rpc(call, json()));
  EXPECT_TRUE(answers_rpc(call, json({{"Date", "x"}, {"X-Request-Id", "1"}})));
  EXPECT_TRUE(answers_rpc(R"({"id":7.0,"jsonrpc":"2.0"})", json()));
  EXPECT_FALSE(answers_rpc(R"({"id":"7","jsonrpc":"2.0"})", json())) << "of another call";
  EXPECT_FALSE(answers_rpc("[" + call + "]", json()));
  EXPECT_FALSE(answers_rpc("", json()));
}

TEST(RpcAnswer, S14_an_answer_that_holds_for_its_bytes_alone_may_not) {
  for (const char* const field :
       {"Content-Digest", "Repr-Digest", "digest", "Content-MD5", "Signature", "Signature-Input",
        "X-Hub-Signature-256", "x-goog-hash", "x-amz-checksum-sha256", "X-JWS", "X-Hmac", "ETag",
        "Content-Encoding", "Content-Range"}) {
    EXPECT_FALSE(answers_rpc(call, json({{field, "x"}}))) << field;
  }
  EXPECT_FALSE(answers_rpc(call, answer({}))) << "without a type";
  EXPECT_FALSE(answers_rpc(call, answer({{"Content-Type", "text/plain"}})));
  EXPECT_FALSE(answers_rpc(call, json({{"Content-Type", "application/json"}}))) << "two types";
  EXPECT_FALSE(
      answers_rpc(call, answer({{"Content-Type", "application/json"}}, "[" + result + "]")));
}

TEST(RpcAnswer, S14_only_the_id_is_changed) {
  WireAnswer replay = json();
  replay.shared_body = std::make_shared<const std::string>(std::move(replay.body));
  put_rpc_id(replay, "7");
  EXPECT_TRUE(replay.shared_body);
  put_rpc_id(replay, "\"b\"");
  EXPECT_EQ(replay.body_bytes(), R"({"jsonrpc":"2.0","result":"ok","id":"b"})");
  EXPECT_EQ(replay.headers, json().headers);
}

}  // namespace
}  // namespace idem::gateway
