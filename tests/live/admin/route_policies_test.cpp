#include <csignal>
#include <filesystem>
#include <fstream>

#include "support/admin.hpp"
#include "support/shared_store.hpp"

/// The settings that apply to each route, and where each comes from.
namespace idem::test {
namespace {

constexpr const char* two_routes =
    "defaults: {lease: 45s, preset: stripe}\n"
    "quotas: {active_keys: 1}\n"
    "routes:\n"
    "  - name: charges\n"
    "    match: {methods: [POST], path: /charges}\n"
    "    preset: lenient\n"
    "    statuses: {402: release}\n"
    "    retention: 48h\n"
    "  - match: {path: \"/refunds/{id}\"}\n"
    "    enforce: shadow\n";

class RoutePolicies : public Operated {
 protected:
  void SetUp() override {
    write(two_routes);
    Operated::SetUp();
  }
  std::vector<std::string> flags() const override {
    return {"--config", file().string(), "--wait-max", "7s"};
  }
  std::filesystem::path file() const { return dir_.path() / "idem.yaml"; }
  void write(std::string_view text) const { std::ofstream(file(), std::ios::trunc) << text; }

  static Json setting(const Json& of, std::string_view name) {
    for (const Json& one : of["settings"].items) {
      if (one["name"].string == name) return one;
    }
    return {};
  }
  /// "48h by route"
  static std::string short_form(const Json& of, std::string_view name) {
    const Json one = setting(of, name);
    const bool has_none = one["value"].kind == Json::Kind::null;
    return (has_none ? "none" : one["value"].string) + " by " + one["origin"].string;
  }
  /// "stored by preset ietf"
  static std::string meaning(const Json& answers, int status) {
    for (const Json& one : answers.items) {
      if (one["first"].integer > status || one["last"].integer < status) continue;
      return one["outcome"].string + " by " + one["origin"].string;
    }
    return "none";
  }
};

TEST_F(RoutePolicies, each_setting_says_where_its_value_comes_from) {
  const Json page = read("/v1/routes");
  const auto& routes = page["routes"].items;
  ASSERT_EQ(routes.size(), 3U) << "the last one matches what no other does";
  const Json& charges = routes[0];
  EXPECT_EQ(charges["route"].string, "charges");
  EXPECT_EQ(charges["path"].string, "/charges");
  ASSERT_EQ(charges["methods"].items.size(), 1U);
  EXPECT_EQ(charges["methods"].items[0].string, "POST");
  EXPECT_EQ(charges["enforce"].string, "on");
  EXPECT_EQ(short_form(charges, "retention"), "48h by route");
  EXPECT_EQ(short_form(charges, "lease"), "45s by defaults");
  EXPECT_EQ(short_form(charges, "preset"), "lenient by route");
  EXPECT_EQ(short_form(charges, "statuses"), "{402: release} by route");
  EXPECT_EQ(short_form(charges, "tombstone"), "30d by built in");
  EXPECT_EQ(short_form(charges, "lease_policy"), "unknown by built in");
  EXPECT_EQ(short_form(charges, "reconcile"), "none by built in");
  EXPECT_EQ(setting(charges, "lease")["place"].string, file().string() + ":1:19");
  EXPECT_EQ(setting(charges, "wait_max")["place"].string, "--wait-max");
  EXPECT_EQ(short_form(charges, "wait_max"), "7s by defaults");
  EXPECT_EQ(setting(charges, "tombstone")["place"].kind, Json::Kind::null);
  EXPECT_FALSE(setting(charges, "tombstone")["help"].string.empty());

  EXPECT_EQ(routes[1]["route"].string, "/refunds/{id}");
  EXPECT_TRUE(routes[1]["methods"].items.empty());
  EXPECT_EQ(routes[1]["enforce"].string, "shadow");
  EXPECT_EQ(short_form(routes[1], "enforce"), "shadow by route");
  EXPECT_EQ(short_form(routes[1], "preset"), "stripe by defaults");

  EXPECT_EQ(routes[2]["path"].string, "/{rest...}");
  EXPECT_EQ(short_form(routes[2], "lease"), "45s by defaults");
  EXPECT_EQ(short_form(routes[2], "store_body"), "true by built in");
  EXPECT_EQ(setting(routes[2], "name").kind, Json::Kind::null) << "no entry can give it";
}

TEST_F(RoutePolicies, each_status_says_what_it_means_and_by_which_rule) {
  const Json page = read("/v1/routes");
  const auto& routes = page["routes"].items;
  ASSERT_EQ(routes.size(), 3U);
  const Json& charges = routes[0]["answers"];
  EXPECT_EQ(meaning(charges, 201), "stored by preset lenient");
  EXPECT_EQ(meaning(charges, 402), "released by route");
  EXPECT_EQ(meaning(charges, 421), "released by built in");
  EXPECT_EQ(meaning(charges, 500), "released by preset lenient");
  EXPECT_EQ(meaning(charges, 409), "stored by preset lenient");
  EXPECT_EQ(meaning(routes[0]["answers_with_retry_after"], 409), "released by preset lenient");
  EXPECT_EQ(meaning(routes[2]["answers"], 500), "stored by preset stripe");
}

TEST_F(RoutePolicies, a_reload_changes_them) {
  write("routes:\n  - {name: charges, match: {methods: [POST], path: /charges}, lease: 50s}\n");
  const auto from = gateway_->process().output().size();
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reloaded ", patience, from));
  const Json page = read("/v1/routes");
  ASSERT_EQ(page["routes"].items.size(), 2U);
  EXPECT_EQ(short_form(page["routes"].items[0], "lease"), "50s by route");
  EXPECT_EQ(short_form(page["routes"].items[0], "retention"), "24h by built in");
}

TEST_F(RoutePolicies, quotas_name_the_tenants_that_were_refused) {
  EXPECT_TRUE(read("/v1/routes")["quotas"]["tenants"].items.empty());
  ASSERT_EQ(ask(charge("k1")).status, 201);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(is_problem(ask(charge("more")), 429, "quota_exceeded"));
  }
  const Json quotas = read("/v1/routes")["quotas"];
  EXPECT_EQ(short_form(quotas, "quotas.active_keys"), "1 by settings");
  EXPECT_EQ(short_form(quotas, "quotas.stored_bytes"), "16GiB by built in");
  ASSERT_EQ(quotas["tenants"].items.size(), 1U);
  EXPECT_EQ(quotas["tenants"].items[0]["scope"].string, "acme");
  EXPECT_EQ(quotas["tenants"].items[0]["refused"].integer, 2);
  EXPECT_FALSE(quotas["tenants"].items[0]["last_at"].string.empty());
}

TEST_F(RoutePolicies, have_no_parameters_and_change_nothing) {
  EXPECT_TRUE(is_problem(get("/v1/routes?route=charges"), 400, "invalid_request"));
  EXPECT_EQ(post("/v1/routes", "{}").status, 405);
}

/// Whose settings have a secret where one may be.
class RoutePoliciesOfBank : public Operated {
 protected:
  static constexpr std::string_view secret = "not-for-the-page";
  std::vector<std::string> flags() const override {
    const auto file = dir_.path() / "idem.yaml";
    const auto key = dir_.path() / "auth";
    std::ofstream(key) << "Authorization: Bearer " << secret << '\n';
    std::filesystem::permissions(key, std::filesystem::perms::owner_read);
    std::ofstream(file) << "providers:\n"
                           "  - name: bank\n"
                           "    url: \"http://127.0.0.1:9/"
                        << secret << "?at={operation}\"\n    auth_file: " << key.string()
                        << "\n    found: [2xx]\n"
                           "routes:\n"
                           "  - {name: charges, match: {path: /charges}, reconcile: bank}\n";
    return {"--config", file.string()};
  }
};

TEST_F(RoutePoliciesOfBank, show_the_provider_by_name_alone) {
  const auto answer = get("/v1/routes");
  ASSERT_EQ(answer.status, 200) << answer.raw;
  EXPECT_TRUE(answer.body.contains(R"("name":"reconcile","value":"bank","origin":"route")"))
      << answer.body;
  for (const std::string_view hidden :
       {secret, std::string_view("127.0.0.1:9"), std::string_view("auth")}) {
    EXPECT_FALSE(answer.body.contains(hidden)) << hidden;
  }
}

TEST(RoutePoliciesOfWorker, are_none) {
  IDEM_NEED_PROGRAM("idem");
  const SharedStoreUrl store("postgres");
  ASSERT_EQ(run_program(built_program("idem"), {"migrate", "--store", store.url()}).exit_code, 0);
  Process worker({.program = built_program("idem"),
                  .arguments = {"worker", "--store", store.url(), "--admin", "127.0.0.1:0"}});
  const std::string admin = worker.wait_for_address("admin");
  ASSERT_FALSE(admin.empty()) << worker.output();
  const auto answer =
      send_once(admin, {.method = "GET", .target = "/v1/routes", .fields = {{"Host", admin}}});
  EXPECT_TRUE(is_problem(answer, 404, "not_found")) << answer.raw;
}

}  // namespace
}  // namespace idem::test
