#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <tuple>

#include "support/admin.hpp"
#include "support/json.hpp"
#include "support/live.hpp"
#include "support/shared_store.hpp"

/// `idem check` against the gateway, in each preset and on each store.
namespace idem::test {
namespace {

class OurGateway : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    IDEM_NEED_PROGRAM("idem-check");
    const auto& [preset, kind] = GetParam();
    if (kind != "sqlite") store_ = std::make_unique<SharedStoreUrl>(kind);
    start();
  }
  void start() {
    gateway_ = std::make_unique<Gateway>(
        GatewayOptions{.upstream = provider_.address(),
                       .store = dir_.path() / "idem.db",
                       .store_url = store_ ? store_->url() : std::string(),
                       .flags = {"--preset", std::get<0>(GetParam())}});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  std::string profile() const {
    const std::string& preset = std::get<0>(GetParam());
    return preset == "lenient" ? "custom" : preset;
  }
  std::string config() const {
    const std::string file = (dir_.path() / "check.yaml").string();
    std::ofstream(file) << R"(request:
  path: /charges
  headers: { X-Tenant-Id: acme }
  body: '{"amount": {{amount}}, "currency": "EUR", "order": "{{unique}}"}'
resource: /id
effects: { url: "http://)"
                        << provider_.address() << R"(/ledger", pointer: /effects }
tenant: { header: X-Tenant-Id, other: globex }
other: { path: /refunds, method: PUT, query: "expand=all" }
slow: { headers: { X-Fault: "slow=1500" } }
fails: { headers: { X-Fault: "refuse=503" } }
refuses: { headers: { X-Fault: "refuse=422" } }
timeout: 20s
)";
    return file;
  }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<SharedStoreUrl> store_;
  std::unique_ptr<Gateway> gateway_;
};

INSTANTIATE_TEST_SUITE_P(
    All, OurGateway,
    testing::Combine(testing::Values("ietf", "stripe", "lenient"),
                     testing::Values("sqlite", "postgres", "mysql", "redis", "dynamodb", "hybrid")),
    [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

TEST_P(OurGateway, passes_its_profile) {
  const auto ran = run_program(built_program("idem-check"),
                               {"http://" + gateway_->address(), "--config", config(), "--profile",
                                profile(), "--rate", "0", "--seed", "4711", "--json", "-"});
  const Json report = parse_json(ran.output).value_or(Json{});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(report["verdict"].string, "pass");
  std::size_t passed = 0;
  for (const Json& one : report["cases"].items) {
    EXPECT_NE(one["result"].string, "fail") << one["id"].string << ": " << one["detail"].string;
    EXPECT_EQ(one["failures"].integer, 0) << one["id"].string << " was seen once";
    passed += one["result"].string == "pass" ? 1 : 0;
  }
  EXPECT_GE(passed, 30U) << ran.output;
}

}  // namespace
}  // namespace idem::test
