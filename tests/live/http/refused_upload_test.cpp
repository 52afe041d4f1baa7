#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/clients.hpp"
#include "support/live.hpp"

/// A client that still sends when it is refused gets the refusal, not an error of its write (RFC
/// 9112 §9.6): with the clients that people have.
namespace idem::test {
namespace {

constexpr std::size_t megabyte = 1'000'000;

struct Client {
  const char* name;
  std::vector<std::string> command;  ///< Of /usr/bin/env.
};

std::ostream& operator<<(std::ostream& out, const Client& client) { return out << client.name; }

const std::vector<Client>& clients() {
  static const std::vector<Client> all{
      {"fetch", {"node", client_program("refused_uploads.js"), "fetch"}},
      {"axios", {"node", client_program("refused_uploads.js"), "axios"}},
      {"go", {built_program("refused-uploads-go").string(), "net/http"}},
      {"curl", {client_program("refused_uploads_curl"), "curl"}},
      {"python", {"python3", client_program("refused_uploads.py"), "http.client"}},
  };
  return all;
}

bool is_there(const Client& client) {
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
  std::string outcomes(const Client& client, std::size_t bytes,
                       const std::vector<std::string>& fields) {
    ProcessOptions options{.program = "/usr/bin/env", .arguments = client.command};
    for (const auto& argument : {fmt::format("http://{}/charges", gateway_->address()),
                                 std::to_string(bytes), std::to_string(times())}) {
      options.arguments.push_back(argument);
    }
    for (const auto& field : fields) options.arguments.push_back(field);
    options.environment = {"NODE_PATH=" + node_modules().string()};
    Process process(options);
    EXPECT_EQ(process.exit_code(std::chrono::minutes(4)), 0) << process.output();
    fmt::print("{}: {} bytes, {} uploads: {}", client.name, bytes, times(), process.output());
    return process.output();
  }
};

class RefusedUploadBy : public RefusedUpload, public testing::WithParamInterface<Client> {
 protected:
  void SetUp() override {
    if (!is_there(GetParam())) {
      if (required("IDEM_REQUIRE_LIVE")) FAIL() << GetParam().name << " is not installed";
      GTEST_SKIP() << GetParam().name << " is not installed";
    }
    RefusedUpload::SetUp();
  }
};

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

INSTANTIATE_TEST_SUITE_P(All, RefusedUploadBy, testing::ValuesIn(clients()),
                         [](const auto& client) { return std::string(client.param.name); });

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
