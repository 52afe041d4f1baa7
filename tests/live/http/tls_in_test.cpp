#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/certificates.hpp"
#include "support/live.hpp"

/// TLS between client and gateway: what is spoken, what is refused, who the client is.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

class TlsIn : public Live {
 protected:
  void SetUp() override {
    authority_ = std::make_unique<Authority>(dir_.path() / "pki", "server-ca");
    clients_ = std::make_unique<Authority>(dir_.path() / "pki", "client-ca");
    take(authority_->issue({.common_name = "gateway", .other_names = {"DNS:localhost"}}));
    Live::SetUp();
  }

  /// The files that the gateway reads, at its start and on SIGHUP.
  void take(const Authority::Files& files) {
    fs::copy_file(files.certificate, certificate(), fs::copy_options::overwrite_existing);
    fs::copy_file(files.key, key(), fs::copy_options::overwrite_existing);
  }
  std::string certificate() const { return (dir_.path() / "gateway.pem").string(); }
  std::string key() const { return (dir_.path() / "gateway.key").string(); }

  std::vector<std::string> flags() const override {
    return {"--tls-cert", certificate(), "--tls-key", key()};
  }

  TlsSide client() const {
    return {.ca = authority_->file(), .host = "localhost", .alpn = "http/1.1"};
  }
  Connection connect(const TlsSide& side) const { return {gateway_->address(), side}; }

  std::unique_ptr<Authority> authority_;
  std::unique_ptr<Authority> clients_;
};

TEST_F(TlsIn, a_keyed_request_runs_once_and_is_replayed) {
  const auto first = send_once(gateway_->address(), client(), charge("k"));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, send_once(gateway_->address(), client(), charge("k"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(TlsIn, many_requests_go_over_one_connection) {
  auto connection = connect(client());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(connection.exchange(charge("k" + std::to_string(i))).status, 201);
  }
  EXPECT_EQ(connection.socket().tls()->alpn(), "http/1.1");
}

TEST_F(TlsIn, large_bodies_cross_records_whole) {
  auto request = without(without(charge(""), "Idempotency-Key"), "Content-Type");
  request = with(request, "Content-Type", "text/plain");
  request.method = "PUT";
  request.target = "/echo";
  request.body = std::string(600'000, 'x') + "end";
  auto connection = connect(client());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(connection.exchange(request).status, 201) << i;
}

TEST_F(TlsIn, only_tls_1_2_and_later_is_spoken) {
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    auto side = client();
    side.version = version;
    EXPECT_FALSE(connect(side).open()) << version;
  }
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    auto side = client();
    side.version = version;
    EXPECT_EQ(send_once(gateway_->address(), side, charge("k")).status, 201) << version;
  }
}

TEST_F(TlsIn, another_protocol_than_http_1_1_is_refused) {
  auto side = client();
  side.alpn = "h2";
  EXPECT_FALSE(connect(side).open());
  side.alpn.clear();
  EXPECT_TRUE(connect(side).open()) << "who asks for none gets HTTP/1.1";
}

class TlsResumption : public TlsIn, public testing::WithParamInterface<int> {};

TEST_P(TlsResumption, a_session_is_resumed_also_across_a_reload) {
  auto side = client();
  side.version = GetParam();
  auto first = connect(side);
  ASSERT_EQ(first.exchange(charge("k")).status, 201);
  EXPECT_FALSE(first.socket().tls()->resumed());
  side.session = first.socket().tls()->session();
  auto second = connect(side);
  EXPECT_EQ(second.exchange(charge("k")).status, 201);
  EXPECT_TRUE(second.socket().tls()->resumed());
  take(authority_->issue({.common_name = "renewed", .other_names = {"DNS:localhost"}}));
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reloaded"));
  auto third = connect(side);
  EXPECT_EQ(third.exchange(charge("k")).status, 201);
  EXPECT_TRUE(third.socket().tls()->resumed());
}

INSTANTIATE_TEST_SUITE_P(Versions, TlsResumption, testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& version) {
                           return version.param == TLS1_2_VERSION ? "Tls12" : "Tls13";
                         });

TEST_F(TlsIn, early_data_is_not_offered) {
  auto connection = connect(client());
  ASSERT_EQ(connection.exchange(charge("k")).status, 201);
  const auto session = connection.socket().tls()->session();
  EXPECT_EQ(SSL_SESSION_get_max_early_data(session.get()), 0u);
}

TEST_F(TlsIn, a_renewed_certificate_is_read_on_sighup_and_connections_live_on) {
  auto before = connect(client());
  ASSERT_EQ(before.exchange(charge("1")).status, 201);
  Authority another(dir_.path() / "pki", "another-ca");
  take(another.issue({.common_name = "gateway", .other_names = {"DNS:localhost"}}));
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reloaded"));
  auto side = client();
  EXPECT_FALSE(connect(side).open()) << "another authority has signed it now";
  side.ca = another.file();
  EXPECT_EQ(send_once(gateway_->address(), side, charge("2")).status, 201);
  EXPECT_EQ(before.exchange(charge("3")).status, 201);
}

TEST_F(TlsIn, a_certificate_that_cannot_be_read_leaves_the_old_one_in_use) {
  fs::resize_file(certificate(), 40);
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reload_failed"));
  EXPECT_EQ(send_once(gateway_->address(), client(), charge("k")).status, 201);
}

TEST_F(TlsIn, a_key_of_another_certificate_is_refused_at_the_start) {
  const auto other = authority_->issue({.common_name = "other"});
  auto wrong = options(provider_->address());
  wrong.flags = {"--tls-cert", certificate(), "--tls-key", other.key};
  wrong.store = dir_.path() / "second.db";
  Gateway gateway(wrong);
  EXPECT_FALSE(gateway.running());
  EXPECT_EQ(gateway.process().exit_code(), 1);
  EXPECT_NE(gateway.process().output().find(other.key), std::string::npos);
}

TEST_F(TlsIn, plain_http_is_not_answered) {
  Connection plain(gateway_->address());
  ASSERT_TRUE(plain.send(charge("k")));
  const auto bytes = plain.read_until_close();
  EXPECT_EQ(bytes.find("HTTP/1.1 2"), std::string::npos) << bytes;
  EXPECT_EQ(effects("k"), 0);
}

TEST_F(TlsIn, P30_a_body_that_is_cut_reserves_nothing) {
  auto connection = connect(client());
  auto request = with(charge("cut"), "Content-Length", "100");
  ASSERT_TRUE(connection.send(request));
  connection.socket().close();
  EXPECT_EQ(send_once(gateway_->address(), client(), charge("cut")).status, 201);
  EXPECT_EQ(effects("cut"), 1);
}

TEST_F(TlsIn, P22_the_end_is_announced_after_the_last_answer) {
  auto connection = connect(client());
  ASSERT_TRUE(connection.send(with(charge("k"), "Connection", "close")));
  EXPECT_EQ(connection.read_response().status, 201);
  std::string rest;
  EXPECT_EQ(connection.socket().receive(rest), Socket::Received::end) << "close_notify";
}

class TlsScope : public TlsIn {
 protected:
  void SetUp() override {
    TlsIn::SetUp();
    auto by_certificate = options(provider_->address());
    by_certificate.scope = {"--scope", "mtls"};
    by_certificate.store = dir_.path() / "mtls.db";
    by_certificate.flags.insert(by_certificate.flags.end(), {"--tls-client-ca", clients_->file()});
    gateway_ = std::make_unique<Gateway>(by_certificate);
    ASSERT_TRUE(gateway_->running());
  }

  TlsSide holding(const Authority::Files& files) const {
    auto side = client();
    side.certificate = files.certificate;
    side.key = files.key;
    return side;
  }
  Response ask_as(const TlsSide& side) const {
    return send_once(gateway_->address(), side, charge("k"));
  }
};

TEST_F(TlsScope, S09_each_holder_has_keys_of_its_own) {
  const auto acme = holding(clients_->issue({.common_name = "acme"}));
  const auto other = holding(clients_->issue({.common_name = "other"}));
  const auto first = ask_as(acme);
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, ask_as(acme)));
  const auto others = ask_as(other);
  EXPECT_EQ(others.status, 201);
  EXPECT_FALSE(others.get("Idempotent-Replayed"));
  EXPECT_EQ(effects("k"), 2);
}

// A client with an authority of its own chooses its name.
TEST_F(TlsScope, S09_two_authorities_of_one_name_are_two) {
  Authority other(dir_.path() / "other-pki", "client-ca");
  const auto both = dir_.path() / "both.pem";
  std::ofstream(both) << std::ifstream(clients_->file()).rdbuf()
                      << std::ifstream(other.file()).rdbuf();
  gateway_.reset();
  auto by_certificate = options(provider_->address());
  by_certificate.scope = {"--scope", "mtls"};
  by_certificate.flags.insert(by_certificate.flags.end(), {"--tls-client-ca", both.string()});
  gateway_ = std::make_unique<Gateway>(by_certificate);
  ASSERT_TRUE(gateway_->running());
  EXPECT_EQ(ask_as(holding(clients_->issue({.common_name = "acme"}))).status, 201);
  const auto others = ask_as(holding(other.issue({.common_name = "acme"})));
  EXPECT_EQ(others.status, 201);
  EXPECT_FALSE(others.get("Idempotent-Replayed"));
  EXPECT_EQ(effects("k"), 2);
}

TEST_F(TlsScope, S09_a_renewed_certificate_is_the_same_holder) {
  const auto first = ask_as(holding(clients_->issue({.common_name = "acme"})));
  const auto renewed = holding(clients_->issue({.common_name = "acme"}));
  EXPECT_TRUE(replays(first, ask_as(renewed)));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(TlsScope, S09_a_uri_name_goes_before_the_subject) {
  const auto first = ask_as(holding(
      clients_->issue({.common_name = "pod-1", .other_names = {"URI:spiffe://idem.test/pay"}})));
  EXPECT_TRUE(
      replays(first, ask_as(holding(clients_->issue(
                         {.common_name = {}, .other_names = {"URI:spiffe://idem.test/pay"}})))));
  EXPECT_EQ(ask_as(holding(clients_->issue(
                       {.common_name = {}, .other_names = {"URI:spiffe://idem.test/refund"}})))
                .status,
            201);
  EXPECT_EQ(effects("k"), 2);
}

TEST_F(TlsScope, S09_no_certificate_or_a_nameless_one_is_no_scope) {
  EXPECT_TRUE(is_problem(ask_as(client()), 401, "scope_missing"));
  const auto nameless =
      holding(clients_->issue({.common_name = {}, .other_names = {"DNS:x.test"}}));
  EXPECT_TRUE(is_problem(ask_as(nameless), 401, "scope_missing"));
  EXPECT_EQ(effects("k"), 0);
}

TEST_F(TlsScope, S09_a_certificate_of_another_authority_or_an_expired_one_is_refused) {
  EXPECT_EQ(ask_as(holding(authority_->issue({.common_name = "acme"}))).status, 0);
  EXPECT_EQ(ask_as(holding(clients_->issue({.common_name = "acme", .expired = true}))).status, 0);
  EXPECT_EQ(effects("k"), 0);
}

TEST_F(TlsScope, S09_a_certificate_of_another_intermediate_authority_is_the_same_holder) {
  const Authority::Holder holder{.common_name = "acme", .other_names = {"URI:spiffe://a.test/pay"}};
  Authority first_issuer(dir_.path() / "pki", "intermediate-1", *clients_);
  Authority second_issuer(dir_.path() / "pki", "intermediate-2", *clients_);
  const auto first = ask_as(holding(first_issuer.issue(holder)));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, ask_as(holding(second_issuer.issue(holder)))));
  EXPECT_EQ(effects("k"), 1);
}

// A resumed session would be one whose certificate nobody has verified again.
TEST_F(TlsScope, S09_with_client_certificates_no_session_is_resumed) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    auto side = holding(clients_->issue({.common_name = "acme"}));
    side.version = version;
    auto first = connect(side);
    ASSERT_EQ(first.exchange(charge("k")).status, 201);
    side.session = first.socket().tls()->session();
    auto second = connect(side);
    EXPECT_EQ(second.exchange(charge("k")).get("Idempotent-Replayed"), "true");
    EXPECT_FALSE(second.socket().tls()->resumed());
  }
  EXPECT_EQ(effects("k"), 1);
}

}  // namespace
}  // namespace idem::test
