#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "core/bytes/hex.hpp"
#include "support/admin.hpp"

namespace idem::test {
namespace {

/// Everything that must not be found again, each with a text of its own.
constexpr std::array<std::string_view, 5> canaries{"canarykey7781", "canarybody7782",
                                                   "canarycredential7783", "canarycookie7784",
                                                   "canaryquery7785"};

/// The store and the operator's listings have a scope in clear, logs and metrics do not.
constexpr std::string_view canary_scope = "canaryscope7786";

class Canary : public Operated, public testing::WithParamInterface<const char*> {
 protected:
  std::vector<std::string> flags() const override {
    return {"--log-format", GetParam(), "--log-requests"};
  }

  static Request secretive(std::string_view faults = {}, std::string_view body_more = {}) {
    auto request = charge("canarykey7781@example.org", faults,
                          fmt::format(R"({{"card":"canarybody7782{}"}})", body_more));
    request.target = "/charges?token=canaryquery7785";
    request.fields[0].value = canary_scope;
    request = with(std::move(request), "Authorization", "Bearer canarycredential7783");
    return with(std::move(request), "Cookie", "session=canarycookie7784");
  }

  void find_none(const std::string& text, const std::string& where) {
    for (const auto& canary : canaries) {
      EXPECT_EQ(text.find(canary), std::string::npos) << canary << " is in " << where;
      EXPECT_EQ(text.find(hex_of(canary)), std::string::npos)
          << canary << " is, in hex, in " << where;
    }
  }
  std::string environment() {
    return read_file(fmt::format("/proc/{}/environ", gateway_->process().pid()));
  }
  /// The store, the log and whatever else lies beside them.
  std::size_t find_none_at_rest() {
    const auto stored = store_content(dir_.path() / "idem.db");
    find_none(stored, "the store");
    std::size_t bytes = stored.size();
    for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
      const auto content = read_file(file.path());
      bytes += content.size();
      find_none(content, file.path().string());
    }
    return bytes;
  }
};

TEST_P(Canary, V33_T38_not_in_logs_metrics_listings_or_the_store) {
  EXPECT_EQ(ask(secretive()).status, 201);
  EXPECT_EQ(ask(secretive()).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(ask(secretive({}, "-other")).status, 422);
  auto lost = secretive("drop-after");
  lost.fields[2].value = "canarykey7781-lost";
  EXPECT_EQ(ask(lost).status, 502);
  EXPECT_EQ(ask(lost).status, 409);
  auto malformed = secretive();
  malformed.fields[2].value = "\"canarykey7781";
  EXPECT_EQ(ask(malformed).status, 400);
  ASSERT_TRUE(gateway_->process().wait_for_line("key_reused"));
  ASSERT_TRUE(gateway_->process().wait_for_line("outcome_unknown"));

  const auto found =
      get("/v1/keys?scope=canaryscope7786&operation=POST+/charges&key=canarykey7781%40example.org");
  ASSERT_EQ(found.status, 200);
  const auto record = parse_json(found.body).value_or(Json{});
  ASSERT_EQ(record["keys"].items.size(), 1U) << "the operator found it by its key";
  find_none(found.raw, "the record found by key");
  find_none(get("/v1/keys?key=canarykey7781").raw, "a refused listing");
  find_none(get("/v1/keys").raw, "the listing");
  const Json all = read("/v1/keys");
  EXPECT_GE(all["keys"].items.size(), 2U);
  for (const auto& one : all["keys"].items) {
    find_none(get("/v1/keys/" + one["ref"].string).raw, "a record");
  }
  for (const auto& [text, where] : {std::pair{get("/metrics").raw, "/metrics"},
                                    std::pair{gateway_->process().output(), "the log"},
                                    std::pair{environment(), "the environment"}}) {
    find_none(text, where);
    EXPECT_EQ(text.find(canary_scope), std::string::npos) << where;
  }
  EXPECT_GT(find_none_at_rest(), 1024U) << "store and log are there while it runs";

  EXPECT_EQ(gateway_->terminate(), 0);
  ASSERT_TRUE(gateway_->process().wait_for_line("stopped"));
  find_none(gateway_->process().output(), "the log");
  EXPECT_GT(find_none_at_rest(), 1024U);
}

// An operation without a name is its path, and a path may name a person.
TEST_P(Canary, V33_the_path_of_an_operation_without_a_name_is_not_in_the_log) {
  auto request = charge("k");
  request.target = "/customers/jane.doe/4111111111111111/charges";
  ask(request);
  request.body = R"({"amount":2})";
  EXPECT_TRUE(is_problem(ask(request), 422, "key_reused"));
  ASSERT_TRUE(gateway_->process().wait_for_line("key_reused"));
  EXPECT_EQ(gateway_->terminate(), 0);
  const auto log = gateway_->process().output();
  EXPECT_EQ(log.find("jane.doe"), std::string::npos) << log;
  EXPECT_EQ(log.find("4111111111111111"), std::string::npos) << log;
  EXPECT_NE(log.find("/{rest...}"), std::string::npos) << "the route is: " << log;
}

INSTANTIATE_TEST_SUITE_P(Formats, Canary, testing::Values("text", "json"));

}  // namespace
}  // namespace idem::test
