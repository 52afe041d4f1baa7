// Protocol §10 and §14: the ids of JSON-RPC 2.0 calls and answers.
#include "core/json/rpc.hpp"

#include <gtest/gtest.h>

#include <string>

namespace idem {
namespace {

std::string call_id(std::string_view body) {
  return std::string(rpc_call_id(body).value_or("none"));
}
std::string answer_id(std::string_view body) {
  return std::string(rpc_answer_id(body).value_or("none"));
}

TEST(JsonRpc, S10_the_id_of_one_call_is_its_bytes) {
  EXPECT_EQ(call_id(R"({"jsonrpc":"2.0","method":"pay","params":[1],"id":7})"), "7");
  EXPECT_EQ(call_id(R"( { "id" : "a\u0062" , "jsonrpc" : "2\u002e0" } )"), R"("a\u0062")");
  EXPECT_EQ(call_id(R"({"jsonrpc":"2.0","id":-1.5e3})"), "-1.5e3");
  EXPECT_EQ(call_id(R"({"\u0069d":1,"jsonrpc":"2.0","params":{"id":2}})"), "1");
}

TEST(JsonRpc, S10_all_else_is_no_call) {
  const std::string long_id(rpc_id_bytes_max, 'x');
  const std::string large(rpc_body_bytes_max, ' ');
  for (const std::string& body :
       {std::string(R"([{"jsonrpc":"2.0","id":1}])"), std::string(R"({"jsonrpc":"2.0"})"),
        std::string(R"({"jsonrpc":"2.0","id":null})"), std::string(R"({"jsonrpc":"2.0","id":{}})"),
        std::string(R"({"jsonrpc":"2.0","id":[1]})"), std::string(R"({"jsonrpc":"2.0","id":true})"),
        std::string(R"({"jsonrpc":2.0,"id":1})"), std::string(R"({"jsonrpc":"1.0","id":1})"),
        std::string(R"({"id":1})"), std::string(R"({"jsonrpc":"2.0","id":1,"id":2})"),
        std::string(R"({"jsonrpc":"2.0","id":1)"), std::string(R"({"jsonrpc":"2.0","id":1}x)"),
        std::string("1"), std::string("\"2.0\""), std::string(),
        R"({"jsonrpc":"2.0","id":")" + long_id + "\"}", R"({"jsonrpc":"2.0","id":1})" + large}) {
    EXPECT_EQ(call_id(body), "none") << body.substr(0, 100);
    EXPECT_EQ(answer_id(body), "none") << body.substr(0, 100);
  }
}

TEST(JsonRpc, S14_an_answer_has_nothing_but_a_result_or_an_error) {
  EXPECT_EQ(answer_id(R"({"jsonrpc":"2.0","result":{"id":9},"id":7})"), "7");
  EXPECT_EQ(answer_id(R"({"error":{"code":-1},"id":"a","jsonrpc":"2.0"})"), "\"a\"");
  EXPECT_EQ(answer_id(R"({"jsonrpc":"2.0","result":null,"id":7})"), "7");
  for (const std::string_view other :
       {R"({"jsonrpc":"2.0","result":1,"id":7,"signature":"x"})", R"({"jsonrpc":"2.0","id":7})",
        R"({"jsonrpc":"2.0","id":7,"method":"pay"})",
        R"({"jsonrpc":"2.0","result":1,"error":{},"id":7})", R"({"result":1,"id":7})"}) {
    EXPECT_EQ(answer_id(other), "none") << other;
  }
}

TEST(JsonRpc, S14_an_answer_under_another_id_keeps_all_other_bytes) {
  const std::string stored = "{ \"result\" : 1.0, \"id\" : 7 ,\n\"jsonrpc\":\"2.0\" }\n";
  EXPECT_EQ(with_rpc_id(stored, "\"a-b\""),
            "{ \"result\" : 1.0, \"id\" : \"a-b\" ,\n\"jsonrpc\":\"2.0\" }\n");
  EXPECT_EQ(with_rpc_id(stored, "7"), std::nullopt);
  EXPECT_EQ(with_rpc_id(stored, "7.0"), std::nullopt) << "the same value";
  EXPECT_EQ(with_rpc_id("[" + stored + "]", "8"), std::nullopt);
  EXPECT_FALSE(same_rpc_id("7", "\"7\""));
  EXPECT_FALSE(same_rpc_id("9007199254740993", "9007199254740992"));
  EXPECT_TRUE(same_rpc_id(R"("a")", R"("\u0061")"));
}

}  // namespace
}  // namespace idem
