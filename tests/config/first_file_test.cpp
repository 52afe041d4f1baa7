#include "cli/settings/first_file.hpp"

#include <sys/stat.h>

#include <regex>
#include <sstream>

#include "cli/settings/config_check.hpp"
#include "cli/settings/first_questions.hpp"
#include "config/reading.hpp"
#include "support/certificates.hpp"
#include "support/token_maker.hpp"

/// The file that `idem init` writes, and the questions that it asks.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const Words addresses{"--listen", "127.0.0.1:8081", "--admin", "127.0.0.1:9902"};
const Words enough{"--upstream", "http://127.0.0.1:9", "--scope", "static:my-api"};

class FirstFile : public testing::Test {
 protected:
  // A path of a flag and one of the file then mean the same.
  void SetUp() override { fs::current_path(dir_.path()); }
  void TearDown() override { fs::current_path(started_in_); }

  cli::GatewayFlags given(const Words& words) const {
    cli::CommandLine line;
    const cli::SettingsSource source(line, &cli::is_of_first_file);
    EXPECT_TRUE(line.parse(words));
    config::Complaints complaints;
    auto flags = source.gather_as_given(complaints);
    EXPECT_TRUE(complaints.empty()) << joined(complaints.lines());
    flags->folder = dir_.path();
    return flags.value();
  }

  /// Flags and the file that is made of them give the same settings, named or not.
  void expect_same(const Words& words) const {
    const auto flags = read_settings(words);
    ASSERT_TRUE(flags) << joined(flags.error());
    const auto text = cli::first_file(given(words));
    write_text("idem.yaml", text);
    const auto file = read_config("idem.yaml");
    ASSERT_TRUE(file) << joined(file.error()) << text;
    auto before = flags->given;
    auto after = file->given;
    const auto of_flags = cli::settings_of(before);
    const auto of_file = cli::settings_of(after);
    for (std::size_t i = 0; i < of_flags.size(); ++i) {
      EXPECT_TRUE(config::same_value(of_flags[i], of_file[i])) << of_flags[i].path << '\n' << text;
    }
  }

  /// For each form of a scope the flags that it needs.
  std::vector<Words> scopes() const {
    write_text("jwks.json", R"({"keys":[)" + TokenMaker("ES256").jwk(R"("kid":"a")") + "]}");
    Authority authority(dir_.path(), "authority");
    const auto server = authority.issue({.common_name = "localhost"});
    return {{"--scope", "static:my api: \"#1\""},
            {"--scope", "authorization"},
            {"--scope", "header:X-Tenant-Id", "--trusted-proxy", "10.0.0.0/8", "--trusted-proxy",
             "fd00::/8"},
            {"--scope", "header:X-Tenant-Id", "--trust-scope-header"},
            {"--scope", "jwt:sub", "--jwt-algorithm", "ES256", "--jwt-jwks-file", "jwks.json",
             "--jwt-issuer", "https://login.example"},
            {"--scope", "mtls", "--tls-cert", server.certificate, "--tls-key", server.key,
             "--tls-client-ca", authority.file()}};
  }

  TempDir dir_;
  const fs::path started_in_ = fs::current_path();
};

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(FirstFile, says_what_the_flags_say_for_each_scope) {
  for (const auto& scope : scopes()) {
    SCOPED_TRACE(scope[1]);
    expect_same(addresses + Words{"--upstream", "http://127.0.0.1:9"} + scope);
  }
}

TEST_F(FirstFile, says_what_the_flags_say_for_each_store) {
  for (const std::string store :
       {"sqlite:./idem.db", "sqlite:/tmp/idem.db", "memory:", "postgres://idem@db/idem",
        "postgres://idem:s3cret@db/idem", "mysql://idem@db/idem", "mysql://idem:s3cret@db/idem",
        "redis://cache", "redis://:s3cret@cache", "redis+cluster://a,b/",
        "redis+sentinel://a,b/main", "dynamodb://records?region=eu-central-1",
        "hybrid:?truth=postgres://idem@db/idem&fast=redis://cache"}) {
    SCOPED_TRACE(store);
    expect_same(addresses + enough + Words{"--store", store});
    const auto text = cli::first_file(given(enough + Words{"--store", store}));
    const bool has_password = store.contains("s3cret");
    EXPECT_EQ(text.contains("holds a password"), has_password) << text;
    EXPECT_EQ(text.contains("passfile"), has_password && store.starts_with("postgres")) << text;
    EXPECT_EQ(text.contains("password_file"), has_password && !store.starts_with("postgres"));
  }
}

TEST_F(FirstFile, V33_a_password_is_found_wherever_a_url_may_have_one) {
  for (const auto* url :
       {"postgres://idem:s3@db/idem", "postgres://idem:a/b@db/idem",
        "postgres://idem:a%40b@db/idem", "postgres://db/idem?user=idem&password=s3",
        "redis://:s3@cache", "hybrid:?truth=postgres://idem@db/idem&fast=redis://:s3@cache",
        "hybrid:?truth=postgres%3A%2F%2Fidem%3As3%40db%2Fidem&fast=redis://cache"}) {
    EXPECT_TRUE(cli::holds_password(url)) << url;
  }
  for (const auto* url :
       {"sqlite:./idem.db", "memory:", "postgres://idem@db:5432/idem?passfile=pw",
        "mysql://idem@db/idem?password_file=pw", "redis://cache:6379", "redis+cluster://a:1,b:2/",
        "dynamodb://records?region=eu-central-1&endpoint=http://127.0.0.1:8000",
        "hybrid:?truth=postgres://db:5432/idem&fast=redis://user@cache"}) {
    EXPECT_FALSE(cli::holds_password(url)) << url;
  }
}

TEST_F(FirstFile, says_what_the_other_flags_say) {
  expect_same(addresses + enough + Words{"--preset", "stripe"});
  expect_same(addresses + Words{"--upstream", "https://api.example", "--scope", "authorization"});
}

TEST_F(FirstFile, a_name_behind_a_number_sign_is_a_setting_with_its_default) {
  const auto text = cli::first_file(given(addresses + enough));
  const auto all = std::regex_replace(text, std::regex("(^|\n)( *)#(?=[a-z-])"), "$1$2");
  EXPECT_TRUE(all.contains("\n  lease: 60s\n")) << all;
  EXPECT_TRUE(all.contains("\nroutes:\n  - name: create-payment\n    match:")) << all;
  write_text("idem.yaml", all);
  const auto read = read_config("idem.yaml");
  ASSERT_TRUE(read) << joined(read.error()) << all;
  EXPECT_EQ(read->given.routes.size(), 2U);
  auto without = read->given;
  without.routes.clear();
  auto defaults = read_settings(addresses + enough)->given;
  const auto before = cli::settings_of(defaults);
  const auto after = cli::settings_of(without);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(config::same_value(before[i], after[i])) << before[i].path;
  }
}

TEST_F(FirstFile, has_a_comment_for_each_setting_and_short_lines) {
  std::istringstream lines(cli::first_file(given(enough)));
  const std::regex setting(" *#?[a-z_]+: .+");
  std::string before;
  for (std::string line; std::getline(lines, line); before = line) {
    EXPECT_LE(line.size(), 100U) << line;
    if (line == "#routes:") break;  // One comment for all of the example.
    if (!std::regex_match(line, setting)) continue;
    EXPECT_TRUE(std::regex_match(before, std::regex(" *# .+"))) << before << '\n' << line;
  }
}

TEST_F(FirstFile, a_value_that_no_file_can_hold_is_refused_before_one_is_written) {
  const auto flags = given(addresses + Words{"--upstream", "http://127.0.0.1:9", "--scope"} +
                           Words{"static:\xff"});
  EXPECT_FALSE(cli::misread_settings(cli::first_file(flags), "idem.yaml", flags).empty());
  const auto right = given(addresses + enough);
  EXPECT_TRUE(cli::misread_settings(cli::first_file(right), "idem.yaml", right).empty());
}

class FirstQuestions : public FirstFile {
 protected:
  struct Asked {
    bool ended_well = false;
    cli::GatewayFlags flags{};
    std::string output{};
  };
  Asked ask(const std::string& answers, const Words& words = {}) const {
    std::istringstream in(answers);
    std::ostringstream out;
    Asked asked{.flags = given(words)};
    asked.ended_well = cli::ask_for_settings(asked.flags, in, out);
    asked.output = out.str();
    return asked;
  }
};

TEST_F(FirstQuestions, three_answers_are_enough) {
  const auto asked = ask("http://127.0.0.1:9\nstatic:my-api\n\n");
  ASSERT_TRUE(asked.ended_well) << asked.output;
  EXPECT_EQ(asked.flags.upstream.text, "http://127.0.0.1:9");
  EXPECT_EQ(asked.flags.caller.scope.text, "static:my-api");
  EXPECT_EQ(asked.flags.store.text, "sqlite:./idem.db");
  EXPECT_TRUE(cli::complaints_about(asked.flags).empty());
  for (const auto* part : {"upstream.url: http(s)://HOST[:PORT] of the API behind the gateway\n",
                           "--upstream, such as http://127.0.0.1:9000 (no default): ",
                           "  header:NAME ", "--store [sqlite:./idem.db]: "}) {
    EXPECT_TRUE(asked.output.contains(part)) << part << asked.output;
  }
}

TEST_F(FirstQuestions, a_wrong_answer_gets_the_complaint_of_the_flag_and_is_asked_again) {
  const auto asked =
      ask("\nftp://api\nhttp://127.0.0.1:9\n"
          "tenant\n  static:my-api \n"
          "oracle://db\nsqlite:/no/such/folder/idem.db\nmemory:\n");
  ASSERT_TRUE(asked.ended_well) << asked.output;
  EXPECT_EQ(asked.flags.store.text, "memory:");
  EXPECT_EQ(asked.flags.caller.scope.text, "static:my-api");
  for (const Words& words : {Words{"--upstream", "ftp://api", "--scope", "static:my-api"},
                             Words{"--upstream", "http://127.0.0.1:9", "--scope", "tenant"},
                             enough + Words{"--store", "oracle://db"}}) {
    const auto complaint = read_settings(words).error();
    EXPECT_TRUE(asked.output.contains(joined(complaint))) << joined(complaint) << asked.output;
  }
  EXPECT_TRUE(asked.output.contains("--upstream: an answer is needed")) << asked.output;
  EXPECT_TRUE(asked.output.contains("\"/no/such/folder\" is no directory")) << asked.output;
}

TEST_F(FirstQuestions, a_scope_asks_for_what_it_needs) {
  const auto header = ask("http://127.0.0.1:9\nheader:X-Tenant-Id\n\n\n");
  ASSERT_TRUE(header.ended_well) << header.output;
  ASSERT_EQ(header.flags.caller.trusted_proxies.items.size(), 1U);
  EXPECT_EQ(header.flags.caller.trusted_proxies.items[0].text, "127.0.0.1/32");
  const auto wrong =
      ask("http://127.0.0.1:9\nheader:X-Tenant-Id\n10.0.0.1/8\n10.0.0.0/8,192.0.2.7/32\n\n");
  ASSERT_TRUE(wrong.ended_well) << wrong.output;
  EXPECT_TRUE(wrong.output.contains("--trusted-proxy: \"10.0.0.1/8\" has bits")) << wrong.output;
  EXPECT_EQ(wrong.flags.caller.trusted_proxies.items.size(), 2U);
  EXPECT_EQ(wrong.flags.caller.scope.text, "header:X-Tenant-Id") << "it is not asked again";

  const auto files = scopes();
  const auto jwt =
      ask("http://127.0.0.1:9\njwt:sub\nES256\njwks.json\nhttps://login.example\n\n\n");
  ASSERT_TRUE(jwt.ended_well) << jwt.output;
  EXPECT_FALSE(jwt.flags.caller.jwt_audience.given);
  EXPECT_TRUE(cli::complaints_about(jwt.flags).empty());
  const auto& mtls = files.back();
  const auto certified =
      ask("http://127.0.0.1:9\nmtls\n" + mtls[3] + "\n" + mtls[5] + "\n" + mtls[7] + "\n\n");
  ASSERT_TRUE(certified.ended_well) << certified.output;
  EXPECT_TRUE(cli::complaints_about(certified.flags).empty());
}

TEST_F(FirstQuestions, what_is_given_is_not_asked) {
  const auto asked =
      ask("static:my-api\n", {"--upstream", "http://127.0.0.1:9", "--store", "memory:"});
  ASSERT_TRUE(asked.ended_well) << asked.output;
  EXPECT_FALSE(asked.output.contains("--upstream")) << asked.output;
  EXPECT_FALSE(asked.output.contains("--store")) << asked.output;
}

TEST_F(FirstQuestions, an_end_before_the_last_answer_is_no_answer) {
  for (const auto* answers : {"", "http://127.0.0.1:9\n", "http://127.0.0.1:9\nstatic:my-api\n",
                              "http://127.0.0.1:9\nstatic:my-api\nmemory:"}) {
    EXPECT_FALSE(ask(answers).ended_well) << answers;
  }
}

}  // namespace
}  // namespace idem::test
