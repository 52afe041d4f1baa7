#include <gtest/gtest.h>

#include <string>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Keys = Live;

Request keyless(std::string_view method, std::string_view target = "/charges") {
  auto request = without(charge(""), "Idempotency-Key");
  request.method = method;
  request.target = target;
  if (method == "GET" || method == "HEAD") request.body.clear();
  return request;
}

TEST_F(Keys, V11_post_and_patch_need_one) {
  for (const auto* method : {"POST", "PATCH"}) {
    const auto answer = ask(keyless(method));
    EXPECT_TRUE(is_problem(answer, 400, "key_missing")) << method;
    EXPECT_EQ(json_text(answer.body, "retry"), "new_key_safe");
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(Keys, V11_the_others_pass_without) {
  EXPECT_EQ(ask(keyless("PUT")).status, 201);
  EXPECT_EQ(ask(keyless("PUT")).status, 201);
  EXPECT_EQ(ask(keyless("DELETE")).status, 201);
  EXPECT_EQ(provider_->ledger().effects, 3);
  EXPECT_EQ(ask(keyless("GET", "/charges/ch_1")).status, 200);
  EXPECT_EQ(ask(keyless("GET", "/echo")).status, 200);
  const auto head = ask(keyless("HEAD", "/charges/ch_1"));
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.get("Content-Length").value_or("0"), "0");
}

TEST_F(Keys, S08_get_ignores_a_key) {
  auto request = with(keyless("GET", "/echo"), "Idempotency-Key", "k");
  for (int i = 0; i < 2; ++i) {
    const auto answer = ask(request);
    EXPECT_EQ(answer.status, 200);
    EXPECT_FALSE(answer.get("Idempotent-Replayed"));
    EXPECT_FALSE(answer.get("Idempotency-Outcome"));
  }
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(Keys, S08_put_and_delete_honour_one) {
  for (const auto* method : {"PUT", "DELETE", "PATCH"}) {
    auto request = charge(method);
    request.method = method;
    const auto first = ask(request);
    EXPECT_TRUE(replays(first, ask(request))) << method;
    EXPECT_EQ(effects(method), 1);
  }
}

// A server that ignores case would run it: without a key, or as another request under the same key.
TEST_F(Keys, S08_P28_a_method_in_another_case_is_refused) {
  for (const auto* method : {"post", "Post", "patch", "put", "delete", "options", "query", "get"}) {
    for (auto request : {charge("k"), keyless(method, "/echo")}) {
      request.method = method;
      EXPECT_TRUE(is_problem(ask(request), 400, "bad_request")) << method;
    }
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_EQ(ask(keyless("POSTS", "/echo")).status, 200) << "others stay as they are";
}

TEST_F(Keys, P34_several_lines_or_a_list_are_refused) {
  EXPECT_TRUE(is_problem(ask(with(charge("a"), "Idempotency-Key", "b")), 400, "key_invalid"));
  EXPECT_TRUE(is_problem(ask(with(charge("a"), "idempotency-key", "a")), 400, "key_invalid"));
  EXPECT_TRUE(is_problem(ask(charge("a, b")), 400, "key_invalid"));
  EXPECT_TRUE(is_problem(ask(charge(R"("a", "b")")), 400, "key_invalid"));
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(Keys, T48_malformed_ones_are_refused) {
  const std::string bad[] = {"",
                             R"("")",
                             R"("open)",
                             R"("a\x")",
                             R"("a"b)",
                             "a b",
                             "a;b",
                             "caf\xc3\xa9",
                             "\"\xc3\xa9\"",
                             "a\tb",
                             std::string(256, 'k')};
  for (const auto& key : bad) {
    const auto answer = ask(charge(key));
    EXPECT_TRUE(is_problem(answer, 400, "key_invalid") || is_problem(answer, 400, "bad_request"))
        << key << "\n"
        << answer.raw;
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(Keys, V07_quoted_and_bare_are_one_key) {
  const auto first = ask(charge("k-1"));
  EXPECT_TRUE(replays(first, ask(charge(R"("k-1")"))));
  EXPECT_TRUE(replays(first, ask(charge(R"("k-1";p=1)"))));
  const auto escaped = ask(charge(R"("a\"b\\c")"));
  EXPECT_TRUE(replays(escaped, ask(charge(R"("a\"b\\c")"))));
  EXPECT_EQ(provider_->ledger().effects, 2);
}

TEST_F(Keys, V07_are_opaque_and_case_sensitive) {
  for (const auto* key : {"k", "K", "k.", "0", "00", R"("with space")"}) {
    EXPECT_FALSE(ask(charge(key)).get("Idempotent-Replayed")) << key;
  }
  EXPECT_EQ(provider_->ledger().effects, 6);
}

TEST_F(Keys, V07_the_longest_is_255_bytes) {
  const std::string longest(255, 'k');
  const auto first = ask(charge(longest));
  EXPECT_TRUE(replays(first, ask(charge(longest))));
}

TEST_F(Keys, P14_connection_cannot_remove_the_key) {
  for (const auto* name : {"Idempotency-Key", "Authorization", "Content-Length"}) {
    const auto answer = ask(with(charge("k"), "Connection", name));
    EXPECT_TRUE(is_problem(answer, 400, "bad_request")) << name;
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(Keys, V33_are_neither_in_the_log_nor_in_the_store) {
  const std::string canary = "canary-key-5417";
  ask(charge(canary));
  ask(charge(canary));
  ask(charge(canary, "", "{}"));
  const auto metrics = send_once(gateway_->admin(), {.method = "GET", .target = "/metrics"});
  EXPECT_EQ(metrics.raw.find(canary), std::string::npos);
  EXPECT_EQ(gateway_->terminate(), 0);
  EXPECT_EQ(gateway_->process().output().find(canary), std::string::npos);
  for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
    EXPECT_EQ(read_file(file.path()).find(canary), std::string::npos) << file.path();
  }
  const std::string stored = store_content(dir_.path() / "idem.db");
  EXPECT_EQ(stored.find(canary), std::string::npos);
  EXPECT_NE(stored.find("application/json"), std::string::npos) << "the answer lies there";
}

}  // namespace
}  // namespace idem::test
