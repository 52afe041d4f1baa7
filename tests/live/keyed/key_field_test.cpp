#include <string>

#include "support/live.hpp"

/// The key's field at the upstream, and the keys that are accepted.
namespace idem::test {
namespace {

using Values = std::vector<std::string>;

class KeyField : public Live {
 protected:
  void SetUp() override {}
  void start(std::vector<std::string> flags) {
    flags_ = std::move(flags);
    Live::SetUp();
  }
  std::vector<std::string> flags() const override { return flags_; }

  /// The provider's view of a keyed request with these further fields.
  Response echo(std::vector<Field> more) {
    auto request = charge("k");
    request.target = "/echo";
    for (const auto& field : more) request = with(request, field.name, field.value);
    return ask(request);
  }

 private:
  std::vector<std::string> flags_;
};

TEST_F(KeyField, is_forwarded_as_it_came_by_default) {
  start({});
  EXPECT_EQ(echoed(echo({}), "Idempotency-Key"), Values{"k"});
}

TEST_F(KeyField, can_be_stripped) {
  start({"--key-forward", "strip"});
  EXPECT_EQ(echoed(echo({{"X-Other", "1"}}), "Idempotency-Key"), Values{});
  auto unkeyed = charge("k");
  unkeyed.method = "GET";
  unkeyed.target = "/echo";
  unkeyed.body.clear();
  EXPECT_EQ(echoed(ask(unkeyed), "Idempotency-Key"), Values{}) << "also where it is ignored";
}

TEST_F(KeyField, can_be_renamed_and_nobody_else_uses_that_name) {
  start({"--key-forward", "rename:X-Dedupe"});
  const auto answer = echo({{"x-dedupe", "forged"}, {"X_Dedupe", "forged"}, {"xdedupe", "forged"}});
  EXPECT_EQ(echoed(answer, "X_Dedupe"), Values{});
  EXPECT_EQ(echoed(answer, "xdedupe"), Values{});
  EXPECT_EQ(echoed(answer, "Idempotency-Key"), Values{});
  EXPECT_EQ(echoed(answer, "X-Dedupe"), Values{"k"});
}

TEST_F(KeyField, P34_with_another_in_disguise_beside_it_is_refused) {
  start({});
  for (const auto* name : {"Idempotency_Key", "IDEMPOTENCY.KEY", "idempotencykey"}) {
    EXPECT_TRUE(is_problem(ask(with(charge("k"), name, "other")), 400, "key_invalid")) << name;
    EXPECT_TRUE(is_problem(ask(with(without(charge(""), "Idempotency-Key"), name, "k")), 400,
                           "key_missing"))
        << name;
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(KeyField, several_accepted_names_can_become_one) {
  start({"--key-header", "X-Key", "--key-header", "Idempotency-Key", "--key-forward",
         "rename:Idempotency-Key"});
  auto request = with(without(charge(""), "Idempotency-Key"), "X-Key", "k");
  request.target = "/echo";
  const auto answer = ask(request);
  EXPECT_EQ(echoed(answer, "Idempotency-Key"), Values{"k"});
  EXPECT_EQ(echoed(answer, "X-Key"), Values{});
}

TEST_F(KeyField, that_is_too_short_is_refused) {
  start({"--key-min-length", "8"});
  EXPECT_TRUE(is_problem(ask(charge("1234567")), 400, "key_invalid"));
  EXPECT_TRUE(is_problem(ask(charge("\"1234567\"")), 400, "key_invalid"))
      << "quotes are no part of it";
  EXPECT_EQ(ask(charge("12345678")).status, 201);
}

TEST_F(KeyField, that_looks_like_a_person_is_refused_where_that_is_asked) {
  start({"--key-reject-pii"});
  for (const auto* key : {"jane@example.com", "4111111111111111", "+14155550123"}) {
    const auto answer = ask(charge(key));
    EXPECT_TRUE(is_problem(answer, 400, "key_invalid"));
    EXPECT_EQ(answer.body.find(key), std::string::npos);
  }
  EXPECT_EQ(ask(charge("0c9b2f3a-9f0e-4f0c-8a3e-3f0e6a3f1b2c")).status, 201);
  EXPECT_EQ(provider_->ledger().effects, 1);
}

TEST_F(KeyField, that_looks_like_a_person_is_accepted_otherwise) {
  start({});
  EXPECT_EQ(ask(charge("jane@example.com")).status, 201);
}

}  // namespace
}  // namespace idem::test
