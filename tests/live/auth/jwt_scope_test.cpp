#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "support/live.hpp"
#include "support/token_maker.hpp"

/// Scope jwt:CLAIM over the wire.
namespace idem::test {
namespace {

constexpr const char* header_of_hs256 = R"({"alg":"HS256"})";

class JwtScope : public Live {
 protected:
  void SetUp() override {
    Live::SetUp();
    write("jwks.json",
          set_of(old_key_.jwk(R"("kid":"old")") + ',' + new_key_.jwk(R"("kid":"new")")));
    start();
  }

  void start(const std::string& issuer = "https://id.test", std::vector<std::string> flags = {}) {
    gateway_.reset();
    auto options = this->options(provider_->address());
    options.store = dir_.path() / "jwt.db";
    options.scope = {"--scope",         "jwt:tenant", "--jwt-jwks-file", path("jwks.json"),
                     "--jwt-algorithm", "ES256",      "--jwt-issuer",    issuer};
    options.flags = std::move(flags);
    gateway_ = std::make_unique<Gateway>(options);
  }

  std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  static std::string set_of(const std::string& keys) { return R"({"keys":[)" + keys + "]}"; }

  /// Claims of a token that is good for `seconds` from now on; negative: was good before.
  static std::string claims(const std::string& tenant, std::int64_t seconds = 3'600,
                            const std::string& more = {}) {
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::system_clock::now().time_since_epoch());
    return R"({"iss":"https://id.test","exp":)" + std::to_string(now.count() + seconds) +
           R"(,"tenant":")" + tenant + '"' + more + '}';
  }
  static Request as(const std::string& token, std::string_view key = "k") {
    return with(without(charge(key), "X-Tenant-Id"), "Authorization", "Bearer " + token);
  }
  void expect_nobody(const Request& request, std::string_view what) {
    const auto answer = ask(request);
    EXPECT_TRUE(is_problem(answer, 401, "scope_missing")) << what;
    EXPECT_EQ(answer.get("WWW-Authenticate"), "Bearer") << what;
  }

  TokenMaker old_key_{"ES256"};
  TokenMaker new_key_{"ES256"};
};

TEST_F(JwtScope, V04_S09_the_claim_is_the_scope_whatever_the_token) {
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const auto first = ask(as(old_key_.token(claims("acme"), "old")));
  EXPECT_EQ(first.status, 201);
  const auto later = new_key_.token(claims("acme", 7'200, R"(,"jti":"2")"), "new");
  EXPECT_TRUE(replays(first, ask(as(later)))) << "another token, key and expiry";
  EXPECT_TRUE(replays(first, ask(as(later)))) << "and once it is known";
  const auto other = ask(as(new_key_.token(claims("globex"), "new")));
  EXPECT_EQ(other.status, 201);
  EXPECT_FALSE(other.get("Idempotent-Replayed"));
  EXPECT_EQ(effects("k"), 2);
}

TEST_F(JwtScope, T33_an_unsigned_token_names_no_principal) {
  const auto token = new_key_.token(claims("acme"), "new");
  ASSERT_EQ(ask(as(token)).status, 201);
  const auto payload = base64url(claims("acme"));
  const std::string hs = base64url(header_of_hs256) + '.' + payload;
  expect_nobody(as(base64url(R"({"alg":"none"})") + '.' + payload + '.'), "alg none");
  expect_nobody(as(hs + '.' + base64url(hmac_sha256(new_key_.key_text(), hs))), "key as secret");
  expect_nobody(as(old_key_.token(claims("acme"), "new")), "the wrong key");
  expect_nobody(as(new_key_.token(claims("acme"), "unknown")), "an unknown kid");
  expect_nobody(as(new_key_.token(claims("acme", -1), "new")), "expired");
  expect_nobody(as(new_key_.token(R"({"iss":"https://id.test","tenant":"acme"})", "new")),
                "no exp");
  expect_nobody(as(new_key_.token(claims("acme", 3'600, R"(,"iss2":1,"nbf":99999999999)"), "new")),
                "not yet");
  expect_nobody(as(new_key_.token(claims(""), "new")), "an empty claim");
  auto tampered = token;
  tampered[token.find('.') + 5] ^= 1;
  expect_nobody(as(tampered), "tampered");
  expect_nobody(as(token.substr(0, token.size() - 2)), "cut");
  EXPECT_EQ(ask(as(token)).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(provider_->ledger().arrivals, 1) << "and nothing else ran";
}

TEST_F(JwtScope, S09_the_token_is_read_from_one_authorization_field_only) {
  const auto token = new_key_.token(claims("acme"), "new");
  const auto nobody = without(charge("k"), "X-Tenant-Id");
  auto in_query = nobody;
  in_query.target = "/charges?access_token=" + token;
  expect_nobody(nobody, "none");
  expect_nobody(in_query, "in the query");
  expect_nobody(with(nobody, "Authorization", "Basic YTpi"), "Basic");
  expect_nobody(with(nobody, "Authorization", token), "no scheme");
  expect_nobody(with(nobody, "Authorization", "Bearer"), "no token");
  expect_nobody(with(nobody, "Authorization", "Bearer " + token + ", Basic YTpi"), "a list");
  expect_nobody(with(nobody, "Proxy-Authorization", "Bearer " + token), "the proxy's");
  expect_nobody(with(as(token), "authorization", "Bearer " + token), "two lines");
  expect_nobody(with(as(token), "Authorization", "Basic YTpi"), "two lines of two kinds");
  expect_nobody(
      as(new_key_.token(claims("acme", 3'600, ",\"x\":\"" + std::string(7'000, 'x') + '"'), "new")),
      "too large");
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_EQ(ask(with(nobody, "Authorization", "bearer  " + token)).status, 201);
}

TEST_F(JwtScope, P14_connection_cannot_remove_the_token) {
  const auto request =
      with(as(new_key_.token(claims("acme"), "new")), "Connection", "Authorization");
  EXPECT_TRUE(is_problem(ask(request), 400, "bad_request"));
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(JwtScope, S09_keys_are_read_again_on_sighup) {
  start("https://id.test", {"--threads", "1"});  // One loop: what it has verified, it remembers.
  const auto by_old = old_key_.token(claims("acme"), "old");
  const auto by_new = new_key_.token(claims("acme"), "new");
  const TokenMaker third("ES256");
  const auto by_third = third.token(claims("acme"), "third");
  ASSERT_EQ(ask(as(by_old)).status, 201);
  expect_nobody(as(by_third), "not known yet");
  write("jwks.json", "{");
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reload_failed"));
  EXPECT_EQ(ask(as(by_old)).get("Idempotent-Replayed"), "true") << "the old keys stay";
  write("jwks.json", set_of(new_key_.jwk(R"("kid":"new")") + ',' + third.jwk(R"("kid":"third")")));
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reloaded"));
  expect_nobody(as(by_old), "its key is gone, also for a token that was verified before");
  EXPECT_EQ(ask(as(by_new)).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(ask(as(by_third)).get("Idempotent-Replayed"), "true");
}

// A body takes as long as its client likes: who it belongs to is asked again once it is here.
TEST_F(JwtScope, S06_a_body_still_arriving_when_its_key_is_revoked_belongs_to_no_tenant) {
  start("https://id.test", {"--threads", "1"});
  const auto request = to_wire(as(old_key_.token(claims("acme"), "old")));
  Connection client(gateway_->address());
  ASSERT_TRUE(client.send_raw(std::string_view(request).substr(0, request.size() - 1)));
  EXPECT_EQ(ask(as(new_key_.token(claims("other"), "new"))).status, 201) << "its head was read";
  write("jwks.json", set_of(new_key_.jwk(R"("kid":"new")")));
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reloaded"));
  ASSERT_TRUE(client.send_raw(std::string_view(request).substr(request.size() - 1)));
  const auto answer = client.read_response();
  EXPECT_TRUE(is_problem(answer, 401, "scope_missing")) << answer.raw;
  EXPECT_EQ(provider_->ledger().effects, 1);
}

// With another issuer no record would be found, and every retry would run again.
TEST_F(JwtScope, T33_a_store_serves_one_issuer) {
  ASSERT_EQ(ask(as(new_key_.token(claims("acme"), "new"))).status, 201);
  ASSERT_EQ(gateway_->terminate(), 0);
  start("https://other.test");
  EXPECT_FALSE(gateway_->running());
  EXPECT_EQ(gateway_->process().exit_code(), 2);
  start();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const auto later = new_key_.token(claims("acme", 9'000), "new");
  EXPECT_EQ(ask(as(later)).get("Idempotent-Replayed"), "true");
}

TEST_F(JwtScope, S09_a_secret_of_hs256_is_ones_own) {
  using std::filesystem::perms;
  const TokenMaker maker("HS256");
  const auto start_with = [&](const char* flag, const std::string& text, perms mode) {
    const auto file = dir_.path() / "hs256";
    std::filesystem::remove(file);
    write("hs256", text);
    std::filesystem::permissions(file, mode);
    gateway_.reset();
    auto options = this->options(provider_->address());
    options.store = dir_.path() / "hs256.db";
    options.scope = {"--scope",         "jwt:tenant", flag,           file.string(),
                     "--jwt-algorithm", "HS256",      "--jwt-issuer", "https://id.test"};
    gateway_ = std::make_unique<Gateway>(options);
    return gateway_->process().output();
  };
  const auto others = perms::owner_read | perms::others_read;
  const std::string set = set_of(maker.jwk(R"("kid":"a")"));
  EXPECT_NE(start_with("--jwt-key-file", maker.key_text(), others).find("chmod 0400"),
            std::string::npos);
  EXPECT_NE(start_with("--jwt-jwks-file", set, others).find("chmod 0400"), std::string::npos);
  // A key that everybody may fetch is no secret.
  const auto public_set = set_of(new_key_.jwk(R"("kid":"new")"));
  for (const auto& text : {public_set, new_key_.jwk(R"("kid":"new")"), "\n " + public_set}) {
    EXPECT_NE(start_with("--jwt-key-file", text, perms::owner_read).find("it is a JWK"),
              std::string::npos);
    EXPECT_FALSE(gateway_->running());
  }
  for (const auto* flag : {"--jwt-key-file", "--jwt-jwks-file"}) {
    const bool one = flag == std::string_view("--jwt-key-file");
    start_with(flag, one ? maker.key_text() : set, perms::owner_read);
    ASSERT_TRUE(gateway_->running()) << flag << gateway_->process().output();
    EXPECT_EQ(ask(as(maker.token(claims("acme"), "a"), flag)).status, 201) << flag;
  }
}

TEST_F(JwtScope, S09_a_gateway_that_could_not_verify_does_not_start) {
  write("public.pem", new_key_.key_text());
  write("secret", "too short");
  const std::string jwks = path("jwks.json");
  const std::string pem = path("public.pem");
  const std::vector<std::vector<std::string>> wrong{
      {"--jwt-jwks-file", jwks, "--jwt-algorithm", "ES256"},
      {"--jwt-jwks-file", jwks, "--jwt-issuer", "i"},
      {"--jwt-algorithm", "ES256", "--jwt-issuer", "i"},
      {"--jwt-jwks-file", jwks, "--jwt-key-file", pem, "--jwt-algorithm", "ES256", "--jwt-issuer",
       "i"},
      {"--jwt-key-file", pem, "--jwt-algorithm", "none", "--jwt-issuer", "i"},
      {"--jwt-key-file", pem, "--jwt-algorithm", "HS256", "--jwt-issuer", "i"},
      {"--jwt-key-file", pem, "--jwt-algorithm", "RS256", "--jwt-issuer", "i"},
      {"--jwt-key-file", path("secret"), "--jwt-algorithm", "HS256", "--jwt-issuer", "i"},
      {"--jwt-key-file", jwks, "--jwt-algorithm", "HS256", "--jwt-issuer", "i"},
      {"--jwt-key-file", path("nothing"), "--jwt-algorithm", "ES256", "--jwt-issuer", "i"},
      {"--jwt-key-file", pem, "--jwt-algorithm", "ES256", "--jwt-issuer", "i", "--jwt-leeway",
       "61s"}};
  for (const auto& flags : wrong) {
    GatewayOptions options{.upstream = unused_address(), .store = dir_.path() / "no.db"};
    options.flags = flags;
    options.scope = {"--scope", "jwt:tenant"};
    Gateway gateway(options);
    EXPECT_FALSE(gateway.running());
    EXPECT_EQ(gateway.process().exit_code(), 2);
  }
}

}  // namespace
}  // namespace idem::test
