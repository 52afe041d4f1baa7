#include "store/dynamodb/credentials.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/record/store_clock.hpp"
#include "loop/asio.hpp"
#include "support/scripted_upstream.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

/// Where the credentials come from, and that nothing of them shows.
namespace idem::dynamodb {
namespace {

using namespace std::chrono_literals;
using test::ScriptedUpstream;
using test::UpstreamConnection;

using Variables = std::map<std::string, std::string>;

/// Answers each request by its method and path: 404 without an entry.
ScriptedUpstream::Script answering(
    std::function<std::optional<std::string>(const test::RequestMessage&)> answer) {
  return [answer = std::move(answer)](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      const auto body = answer(*request);
      if (body) {
        if (!connection.write_answer(*body)) return;
      } else if (!connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")) {
        return;
      }
    }
  };
}

std::string issued(const std::string& id, Millis lives) {
  return R"({"AccessKeyId":")" + id +
         R"(","SecretAccessKey":"hidden","Token":"tok","Expiration":")" +
         to_rfc3339(wall_time() + lives) + "\"}";
}

/// Runs one chain on a loop of its own.
class Chain {
 public:
  explicit Chain(Variables variables, std::string profile = {})
      : chain_(loop_, transfers_, std::move(profile), [variables](const char* name) {
          const auto found = variables.find(name);
          return found != variables.end() ? found->second : std::string();
        }) {}
  ~Chain() { transfers_.close(); }

  CredentialsResult get() {
    std::optional<CredentialsResult> result;
    loop_.spawn(ask(result));
    loop_.context().restart();
    loop_.run("test");
    return std::move(*result);
  }
  void reject() { chain_.reject(); }

 private:
  Task<void> ask(std::optional<CredentialsResult>& into) {
    Task<CredentialsResult> getting = chain_.get();
    into = co_await std::move(getting);
    loop_.stop();
  }

  Loop loop_;
  Transfers transfers_{loop_, {}};
  CredentialChain chain_;
};

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = testing::TempDir() + "/idem-aws-XXXXXX";
    home = mkdtemp(pattern.data());
    std::filesystem::create_directory(home + "/.aws");
  }
  ~Files() override { std::filesystem::remove_all(home); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(home + "/.aws/" + name) << text;
  }
  std::string home;
};
using DynamodbCredentials = Files;

TEST_F(DynamodbCredentials, S02_the_environment_comes_first) {
  write("credentials", "[default]\naws_access_key_id = file\naws_secret_access_key = s\n");
  const Variables variables{{"HOME", home},
                            {"AWS_ACCESS_KEY_ID", "env"},
                            {"AWS_SECRET_ACCESS_KEY", "s"},
                            {"AWS_SESSION_TOKEN", "t"}};
  const auto found = Chain(variables).get();
  ASSERT_TRUE(found.has_value()) << found.error();
  EXPECT_EQ(found->key_id, "env");
  EXPECT_EQ(found->session_token, "t");
  const auto of_profile = Chain(variables, "default").get();
  ASSERT_TRUE(of_profile.has_value()) << of_profile.error();
  EXPECT_EQ(of_profile->key_id, "file") << "the URL names a profile";
}

TEST_F(DynamodbCredentials, S02_the_shared_files_have_profiles) {
  write("credentials",
        "# ours\n[default]\naws_access_key_id=one\naws_secret_access_key=s1\n\n"
        "[other]\naws_access_key_id = two\naws_secret_access_key = s=2\n");
  write("config", "[profile third]\naws_access_key_id=three\naws_secret_access_key=s3\n");
  EXPECT_EQ(Chain({{"HOME", home}}).get()->key_id, "one");
  const auto two = Chain({{"HOME", home}, {"AWS_PROFILE", "other"}}).get();
  EXPECT_EQ(two->key_id, "two");
  EXPECT_EQ(two->secret, "s=2");
  EXPECT_EQ(Chain({{"HOME", home}}, "third").get()->key_id, "three");
  const auto missing = Chain({{"HOME", home}}, "fourth").get();
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().find("fourth"), std::string::npos);
}

TEST_F(DynamodbCredentials, S02_a_profile_that_leads_elsewhere_is_refused_and_not_passed_over) {
  write("config", "[profile admin]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n");
  const auto found = Chain({{"HOME", home}, {"AWS_EC2_METADATA_DISABLED", "true"}}, "admin").get();
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().find("role_arn"), std::string::npos) << found.error();
}

TEST_F(DynamodbCredentials, S02_a_container_gives_them_for_its_token_and_they_are_renewed) {
  std::atomic<int> asked{0};
  ScriptedUpstream container(
      answering([&](const test::RequestMessage& request) -> std::optional<std::string> {
        const auto token = test::find_field(request.head.fields, "Authorization");
        if (request.target() != "/creds" || token != "secret-token") return std::nullopt;
        // The first ones are about to expire, so that the next call renews them.
        return ++asked == 1 ? issued("first", 1min) : issued("second", 1h);
      }));
  write("token", "secret-token\n");
  Chain chain({{"HOME", home},
               {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://" + container.address() + "/creds"},
               {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", home + "/.aws/token"}});
  const auto first = chain.get();
  ASSERT_TRUE(first.has_value()) << first.error();
  EXPECT_EQ(first->key_id, "first");
  EXPECT_EQ(first->session_token, "tok");
  // They serve until they expire; a new reading comes after a pause.
  EXPECT_EQ(chain.get()->key_id, "first");
  EXPECT_EQ(asked.load(), 1);
}

TEST_F(DynamodbCredentials, S02_a_container_elsewhere_needs_https) {
  const auto found =
      Chain({{"HOME", home}, {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/creds"}})
          .get();
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().find("plain http"), std::string::npos) << found.error();
  EXPECT_TRUE(is_local_url("http://[::1]:80/x"));
  EXPECT_TRUE(is_local_url("http://169.254.170.23/v1/credentials"));
  EXPECT_FALSE(is_local_url("http://127.0.0.1.example.com/"));
}

TEST_F(DynamodbCredentials, S02_an_instance_gives_them_for_a_session_token_alone) {
  ScriptedUpstream instance(
      answering([](const test::RequestMessage& request) -> std::optional<std::string> {
        const auto token = test::find_field(request.head.fields, "X-aws-ec2-metadata-token");
        if (request.method() == "PUT" && request.target() == "/latest/api/token") return "session";
        if (token != "session") return std::nullopt;
        const std::string roles = "/latest/meta-data/iam/security-credentials/";
        if (request.target() == roles) return "gateway\n";
        if (request.target() == roles + "gateway") return issued("role", 6h);
        return std::nullopt;
      }));
  const auto found =
      Chain({{"HOME", home}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://" + instance.address()}})
          .get();
  ASSERT_TRUE(found.has_value()) << found.error();
  EXPECT_EQ(found->key_id, "role");
  ASSERT_TRUE(found->expires.has_value());
}

TEST_F(DynamodbCredentials, V33_errors_show_nothing_secret) {
  ScriptedUpstream container(answering([](const test::RequestMessage&) {
    return std::optional<std::string>(R"({"SecretAccessKey":"hidden"})");
  }));
  const auto found =
      Chain({{"HOME", home},
             {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://" + container.address() + "/"},
             {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "secret-token"}})
          .get();
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().find("hidden"), std::string::npos);
  EXPECT_EQ(found.error().find("secret-token"), std::string::npos);
}

}  // namespace
}  // namespace idem::dynamodb
