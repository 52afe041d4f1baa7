#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "support/certificates.hpp"
#include "support/clients.hpp"
#include "support/live.hpp"

/// A client that still sends when it is refused gets the refusal, not an error of its write (RFC
/// 9112 §9.6): with the clients that people have.
namespace idem::test {
namespace {

constexpr std::size_t megabyte = 1'000'000;

struct UploadClient {
  const char* name;
  std::vector<std::string> command;  ///< Of /usr/bin/env.
};

std::ostream& operator<<(std::ostream& out, const UploadClient& client) {
  return out << client.name;
}

const std::vector<UploadClient>& upload_clients() {
  static const std::vector<UploadClient> all{
      {"fetch", {"node", client_program("refused_uploads.js"), "fetch"}},
      {"axios", {"node", client_program("refused_uploads.js"), "axios"}},
      {"go", {built_program("refused-uploads-go").string(), "net/http"}},
      {"curl", {client_program("refused_uploads_curl"), "curl"}},
      {"python", {"python3", client_program("refused_uploads.py"), "http.client"}},
  };
  return all;
}

bool is_there(const UploadClient& client) {
  const std::string name = client.name;
  if (name == "axios" && !std::filesystem::exists(node_modules() / "axios")) return false;
  if (name == "curl" && !is_installed("curl")) return false;
  const std::string& program = client.command.front();
  return program.starts_with('/') ? std::filesystem::exists(program) : is_installed(program);
}

/// IDEM_REFUSED_UPLOADS=1000 is the long run.
int times() {
  const char* const given = std::getenv("IDEM_REFUSED_UPLOADS");
  return given != nullptr ? std::atoi(given) : 20;
}

class RefusedUpload : public Live {
 protected:
  std::vector<std::string> flags() const override { return {"--request-body-max", "64KiB"}; }

  /// The client's report on its uploads, a line for each outcome.
  std::string outcomes(const UploadClient& client, std::size_t bytes,
                       const std::vector<std::string>& fields) {
    ProcessOptions options{.program = "/usr/bin/env", .arguments = client.command};
    for (const auto& argument : {fmt::format("{}://{}/charges", scheme_, gateway_->address()),
                                 std::to_string(bytes), std::to_string(times())}) {
      options.arguments.push_back(argument);
    }
    for (const auto& field : fields) options.arguments.push_back(field);
    options.environment = {"NODE_PATH=" + node_modules().string()};
    for (const auto* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"}) {
      if (!ca_.empty()) options.environment.push_back(name + ("=" + ca_));
    }
    Process process(options);
    EXPECT_EQ(process.exit_code(std::chrono::minutes(4)), 0) << process.output();
    fmt::print("{}: {} bytes, {} uploads: {}", client.name, bytes, times(), process.output());
    return process.output();
  }

  std::string scheme_ = "http";
  std::string ca_;  ///< Whom the clients trust; empty: whom they trust by themselves.
};

/// One of these fixtures, with each client.
template <class Fixture>
class ByClient : public Fixture, public testing::WithParamInterface<UploadClient> {
 protected:
  void SetUp() override {
    if (!is_there(GetParam())) {
      if (required("IDEM_REQUIRE_LIVE")) FAIL() << GetParam().name << " is not installed";
      GTEST_SKIP() << GetParam().name << " is not installed";
    }
    Fixture::SetUp();
  }
};

std::string name_of(const testing::TestParamInfo<UploadClient>& client) {
  return client.param.name;
}

using RefusedUploadBy = ByClient<RefusedUpload>;

TEST_P(RefusedUploadBy, P19_each_too_large_upload_gets_its_refusal) {
  for (const std::size_t bytes : {3 * megabyte, 20 * megabyte}) {
    EXPECT_EQ(outcomes(GetParam(), bytes, {"X-Tenant-Id=acme", "Idempotency-Key=k"}),
              fmt::format("413 {}\n", times()));
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_P(RefusedUploadBy, P19_so_does_each_that_is_refused_by_its_head) {
  EXPECT_EQ(outcomes(GetParam(), 3 * megabyte, {"X-Tenant-Id=acme"}),
            fmt::format("400 {}\n", times()))
      << "without a key";
  EXPECT_EQ(outcomes(GetParam(), 3 * megabyte, {"Idempotency-Key=k"}),
            fmt::format("401 {}\n", times()))
      << "without a scope";
}

INSTANTIATE_TEST_SUITE_P(All, RefusedUploadBy, testing::ValuesIn(upload_clients()), name_of);

/// Room for the body, and for few requests of one tenant.
class CrowdedUpload : public RefusedUpload {
 protected:
  std::vector<std::string> flags() const override {
    return {"--request-body-max", "4MiB", "--threads", "1", "--connections", "64"};
  }
};
using CrowdedUploadBy = ByClient<CrowdedUpload>;

TEST_P(CrowdedUploadBy, P19_each_upload_beyond_the_tenants_share_gets_503) {
  std::deque<Connection> held;
  for (int i = 0; i < 32; ++i) {
    held.emplace_back(gateway_->address());
    held.back().send(charge(fmt::format("held{}", i), "hold=h"));
  }
  ASSERT_TRUE(provider_->wait_held("h", 32));
  EXPECT_EQ(outcomes(GetParam(), 3 * megabyte, {"X-Tenant-Id=acme", "Idempotency-Key=k"}),
            fmt::format("503 {}\n", times()));
  provider_->release("h");
  EXPECT_EQ(provider_->ledger().arrivals, 32);
}

TEST_P(CrowdedUploadBy, P19_each_upload_under_the_key_of_another_gets_422) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(outcomes(GetParam(), 3 * megabyte, {"X-Tenant-Id=acme", "Idempotency-Key=k"}),
            fmt::format("422 {}\n", times()));
  EXPECT_EQ(provider_->ledger().arrivals, 1);
}

INSTANTIATE_TEST_SUITE_P(All, CrowdedUploadBy, testing::ValuesIn(upload_clients()), name_of);

/// Clients whose body is late.
class LateUpload : public RefusedUpload {
 protected:
  std::vector<std::string> flags() const override {
    return {"--request-body-max", "4MiB", "--body-grace", "200ms"};
  }
};
using LateUploadBy = ByClient<LateUpload>;

// All but 300 bytes come later than they may.
TEST_P(LateUploadBy, P19_each_upload_that_stalls_gets_408_though_it_goes_on) {
  EXPECT_EQ(outcomes(GetParam(), 3 * megabyte, {"X-Tenant-Id=acme", "Idempotency-Key=k"}),
            fmt::format("408 {}\n", times()));
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, LateUploadBy,
    testing::Values(UploadClient{"fetch", {"node", client_program("refused_uploads.js"), "slow"}},
                    UploadClient{"python",
                                 {"python3", client_program("refused_uploads.py"), "slow"}}),
    name_of);

class SecureUpload : public RefusedUpload {
 protected:
  void SetUp() override {
    authority_ = std::make_unique<Authority>(dir_.path() / "pki", "server-ca");
    files_ = authority_->issue({.common_name = "gateway", .other_names = {"IP:127.0.0.1"}});
    scheme_ = "https";
    ca_ = authority_->file();
    RefusedUpload::SetUp();
  }
  std::vector<std::string> flags() const override {
    return {"--request-body-max", "64KiB",     "--tls-cert",
            files_.certificate,   "--tls-key", files_.key};
  }
  std::unique_ptr<Authority> authority_;
  Authority::Files files_;
};
using SecureUploadBy = ByClient<SecureUpload>;

TEST_P(SecureUploadBy, P19_each_too_large_upload_over_tls_gets_its_refusal) {
  EXPECT_EQ(outcomes(GetParam(), 3 * megabyte, {"X-Tenant-Id=acme", "Idempotency-Key=k"}),
            fmt::format("413 {}\n", times()));
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

INSTANTIATE_TEST_SUITE_P(All, SecureUploadBy, testing::ValuesIn(upload_clients()), name_of);

/// Behind a proxy of all tenants, by whose address all look alike.
class ProxiedUpload : public RefusedUpload {
 protected:
  std::vector<std::string> flags() const override {
    return {"--request-body-max", "64KiB", "--threads", "1"};
  }
  void SetUp() override {
    RefusedUpload::SetUp();
    auto options = this->options(provider_->address());
    options.store = dir_.path() / "proxied.db";
    options.scope = {"--scope", "header:X-Tenant-Id", "--trusted-proxy", "127.0.5.0/24"};
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  /// Refused, and still sending: more than any client may without a place.
  void keep_sending(std::deque<Connection>& senders, const std::string& fields) {
    senders.emplace_back(gateway_->address(), "127.0.5.1");
    auto& sender = senders.back();
    sender.send_raw("POST /charges HTTP/1.1\r\nHost: a\r\n" + fields +
                    "Content-Length: 100000000\r\n\r\n" + std::string(megabyte / 2, 'x'));
  }
  void expect_each_is_answered() {
    for (int i = 0; i < 20; ++i) {
      Connection client(gateway_->address(), "127.0.5.1");
      auto upload = with(without(charge("k", "", std::string(20 * megabyte, 'x')), "X-Tenant-Id"),
                         "X-Tenant-Id", "globex");
      ASSERT_TRUE(client.send(upload)) << "upload " << i;
      ASSERT_TRUE(is_problem(client.read_response(), 413, "body_too_large")) << i;
    }
  }
};

TEST_F(ProxiedUpload, P19_S22_senders_of_one_tenant_cost_no_other_tenant_its_answer) {
  std::deque<Connection> senders;
  for (int i = 0; i < 300; ++i) {
    keep_sending(senders, "X-Tenant-Id: acme\r\nIdempotency-Key: k\r\n");
  }
  expect_each_is_answered();
}

TEST_F(ProxiedUpload, P19_S22_nor_do_senders_of_nobody) {
  std::deque<Connection> senders;
  for (int i = 0; i < 300; ++i) keep_sending(senders, "Idempotency-Key: k\r\n");
  expect_each_is_answered();
}

// The plainest client there is: it reads only once it has sent everything.
TEST_F(RefusedUpload, P19_a_client_that_reads_only_after_sending_all_gets_the_answer) {
  for (int i = 0; i < times(); ++i) {
    for (const std::size_t bytes : {3 * megabyte, 20 * megabyte}) {
      Connection client(gateway_->address());
      auto upload = charge("k", "", std::string(bytes, 'x'));
      ASSERT_TRUE(client.send(upload)) << "run " << i << ", " << bytes << " bytes";
      EXPECT_TRUE(is_problem(client.read_response(), 413, "body_too_large"));
    }
  }
}

TEST_F(RefusedUpload, P19_so_does_one_whose_head_is_no_http) {
  for (int i = 0; i < times(); ++i) {
    Connection client(gateway_->address());
    ASSERT_TRUE(client.send_raw("POST /charges HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n" +
                                std::string(3 * megabyte, 'x')));
    EXPECT_TRUE(is_problem(client.read_response(), 400, "bad_request"));
  }
}

}  // namespace
}  // namespace idem::test
