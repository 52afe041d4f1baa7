#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/json.hpp"
#include "support/live.hpp"

namespace idem::test {
namespace {

/// Protocol §2 over the wire: what a key is unique in, and secrets over restarts.
class IdentityLive : public Live {
 protected:
  std::string secret_file(const std::string& name, const std::string& content) {
    const auto path = dir_.path() / name;
    std::ofstream(path) << content;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    return path.string();
  }
  std::string good_secret(const std::string& name) {
    return secret_file(name, std::string(40, name.front()) + "\n");
  }

  /// Ends the gateway and starts another one on its store.
  void restart_with(std::vector<std::string> flags) {
    if (gateway_->running()) {
      EXPECT_EQ(gateway_->terminate(), 0);
    }
    auto options = this->options(provider_->address());
    options.flags = std::move(flags);
    gateway_ = std::make_unique<Gateway>(options);
  }
  void expect_refused(const std::string& words) {
    EXPECT_FALSE(gateway_->running());
    EXPECT_EQ(gateway_->process().exit_code(), 2);
    EXPECT_NE(gateway_->process().output().find(words), std::string::npos)
        << gateway_->process().output();
  }
};

Request to(Request request, std::string_view target) {
  request.target = target;
  return request;
}

Request form(std::string_view key, std::string_view type, std::string_view body) {
  return with(without(charge(key, "", body), "Content-Type"), "Content-Type", type);
}

TEST_F(IdentityLive, T46_a_key_belongs_to_its_operation) {
  EXPECT_EQ(ask(charge("k")).status, 201);
  const auto other = ask(to(charge("k"), "/echo"));
  EXPECT_EQ(other.status / 100, 2);
  EXPECT_FALSE(other.get("Idempotent-Replayed"));
}

TEST_F(IdentityLive, T46_with_key_scope_tenant_another_operation_is_a_misuse) {
  restart_with({"--key-scope", "operation"});
  restart_with({"--key-scope", "tenant"});
  ASSERT_TRUE(gateway_->running()) << "an empty store takes any: " << gateway_->process().output();
  const auto first = ask(charge("k"));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(is_problem(ask(to(charge("k"), "/echo")), 422, "key_reused"));
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  const auto stranger = with(without(charge("k"), "X-Tenant-Id"), "X-Tenant-Id", "other");
  EXPECT_FALSE(ask(stranger).get("Idempotent-Replayed"));
  restart_with({});
  expect_refused("key.scope is 'tenant'");
}

TEST_F(IdentityLive, T47_secrets_rotate_without_losing_a_record) {
  const auto old_secret = good_secret("old"), fresh = good_secret("new");
  const auto first = ask(charge("own"));
  restart_with({"--secret-file", old_secret});
  EXPECT_TRUE(replays(first, ask(charge("own"))));
  const auto second = ask(charge("old"));
  EXPECT_EQ(second.status, 201);

  restart_with({"--secret-file", fresh});
  expect_refused("give its file, too");
  restart_with({});
  expect_refused("--secret-file");

  restart_with({"--secret-file", fresh, "--secret-file", old_secret});
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  EXPECT_TRUE(replays(first, ask(charge("own"))));
  EXPECT_TRUE(replays(second, ask(charge("old"))));
  for (const auto* key : {"own", "old"}) {
    EXPECT_TRUE(is_problem(ask(charge(key, "", R"({"amount":2})")), 422, "key_reused")) << key;
    EXPECT_EQ(effects(key), 1);
  }
  EXPECT_EQ(ask(charge("new")).status, 201);
}

TEST_F(IdentityLive, T47_a_static_credential_stays_one_scope_over_a_rotation) {
  const auto by_credential = [&](std::vector<std::string> flags) {
    auto options = this->options(provider_->address());
    options.store = dir_.path() / "credential.db";
    options.scope = {"--scope", "authorization"};
    options.flags = std::move(flags);
    const Gateway gateway(options);
    const auto request = with(without(charge("k"), "X-Tenant-Id"), "Authorization", "Basic YTpi");
    return send_once(gateway.address(), request);
  };
  EXPECT_EQ(by_credential({}).status, 201);
  const auto again = by_credential({"--secret-file", good_secret("s")});
  EXPECT_EQ(again.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(IdentityLive, S02_an_unsafe_secret_file_is_refused) {
  const auto path = good_secret("s");
  std::filesystem::permissions(path, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  restart_with({"--secret-file", path});
  expect_refused("others may read it");
  restart_with({"--secret-file", secret_file("short", "too short\n")});
  expect_refused("holds 9 bytes of key material");
  restart_with({"--secret-file", (dir_.path() / "none").string()});
  expect_refused("No such file");
  restart_with({"--secret-file", dir_.path().string()});
  expect_refused("is no regular file");
  const auto good = good_secret("g");
  restart_with({"--secret-file", good, "--secret-file", good});
  expect_refused("holds the same secret as an earlier file");
}

TEST_F(IdentityLive, V08_a_form_in_another_order_replays) {
  const auto* type = "application/x-www-form-urlencoded";
  const auto first = ask(form("k", type, "amount=5&currency=EUR&tag=a&tag=b"));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, ask(form("k", type, "tag=a&tag=b&currency=EUR&amount=5"))));
  EXPECT_TRUE(
      is_problem(ask(form("k", type, "tag=b&tag=a&currency=EUR&amount=5")), 422, "key_reused"));
  EXPECT_TRUE(
      is_problem(ask(form("k", type, "tag=a&tag=b&currency=EUR&amount=6")), 422, "key_reused"));
}

TEST_F(IdentityLive, T45_a_multipart_with_another_boundary_replays) {
  const auto upload = [](const std::string& boundary, const std::string& amount) {
    return form("k", "multipart/form-data; boundary=" + boundary,
                "--" + boundary + "\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n" +
                    amount + "\r\n--" + boundary + "--\r\n");
  };
  const auto first = ask(upload("one", "5"));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, ask(upload("two", "5"))));
  EXPECT_TRUE(is_problem(ask(upload("two", "6")), 422, "key_reused"));
  EXPECT_EQ(effects("k"), 1);
}

/// The refs that the operator's search by a key finds.
std::vector<std::string> refs_of(const Gateway& gateway, std::string_view operation) {
  const auto target = fmt::format("/v1/keys?scope=acme&operation={}&key=k", operation);
  const auto answer = send_once(
      gateway.admin(), {.method = "GET", .target = target, .fields = {{"Host", gateway.admin()}}});
  EXPECT_EQ(answer.status, 200) << answer.raw;
  std::vector<std::string> refs;
  const auto page = parse_json(answer.body).value_or(Json{});
  for (const auto& record : page["keys"].items) refs.push_back(record["ref"].string);
  return refs;
}

TEST_F(IdentityLive, S02_the_operator_finds_a_key_whose_record_an_older_secret_named) {
  const auto a = good_secret("a");
  const auto b = good_secret("b");
  restart_with({"--secret-file", a});
  ASSERT_EQ(ask(charge("k")).status, 201);
  const auto before = refs_of(*gateway_, "POST+/charges");
  EXPECT_EQ(before.size(), 1U);
  restart_with({"--secret-file", b, "--secret-file", a});
  EXPECT_EQ(ask(charge("k")).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(refs_of(*gateway_, "POST+/charges"), before);
}

TEST_F(IdentityLive, S02_the_operator_finds_a_key_that_is_unique_in_its_scope) {
  restart_with({"--key-scope", "tenant"});
  ASSERT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(refs_of(*gateway_, "POST+/charges").size(), 1U);
}

TEST_F(IdentityLive, S02_the_operator_finds_a_key_under_former_names_of_its_operation) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  const auto before = refs_of(*gateway_, "POST+/charges");
  ASSERT_EQ(before.size(), 1U);
  const auto file = dir_.path() / "idem.yaml";
  std::ofstream(file) << "routes:\n  - {name: pay, formerly: [\"POST /charges\"], "
                         "match: {path: /charges}}\n";
  restart_with({"--config", file.string()});
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  EXPECT_EQ(refs_of(*gateway_, "pay"), before);
  EXPECT_EQ(refs_of(*gateway_, "POST+/charges"), before) << "as the list tells it";
  EXPECT_EQ(refs_of(*gateway_, "refund").size(), 0U);
  std::ofstream(file) << "routes:\n  - {name: pay-2, formerly: [pay, \"POST /{what}\"], "
                         "match: {path: /charges}}\n";
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reloaded"));
  EXPECT_EQ(refs_of(*gateway_, "POST+/charges"), before) << "the path tells what a name cannot";
}

}  // namespace
}  // namespace idem::test
