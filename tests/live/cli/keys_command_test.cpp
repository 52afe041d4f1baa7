#include <fmt/format.h>

#include <fstream>

#include "support/admin.hpp"
#include "support/scripted_live.hpp"

namespace idem::test {
namespace {

/// Exit codes: 0 done, 1 failed, 2 usage, 3 not reachable, 4 not found, 5 refused by state.
class KeysCommand : public Operated {
 protected:
  std::vector<std::string> flags() const override { return {"--preset", "stripe"}; }

  Ran idem(std::vector<std::string> words, std::vector<std::string> environment = {}) {
    words.insert(words.begin(), "keys");
    environment.push_back("IDEM_ADMIN_URL=http://" + gateway_->admin());
    return run_program(built_program("idem"), words, environment);
  }
};

TEST_F(KeysCommand, lists_and_shows_for_people_and_for_programs) {
  ask(charge("k"));
  const auto listed = idem({"list"});
  EXPECT_EQ(listed.exit_code, 0) << listed.output;
  const auto ref = only("completed")["ref"].string;
  for (const auto* part : {"REF", "STATE", "completed", "acme", "POST /charges", "201"}) {
    EXPECT_NE(listed.output.find(part), std::string::npos) << listed.output;
  }
  EXPECT_NE(listed.output.find(ref), std::string::npos);
  const auto json = idem({"list", "--json", "--state", "completed", "--older-than", "0s"});
  EXPECT_EQ(json.exit_code, 0);
  const auto page = parse_json(json.output);
  ASSERT_TRUE(page) << json.output;
  EXPECT_EQ((*page)["keys"].items.size(), 1U);
  const auto shown = idem({"show", ref});
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_NE(shown.output.find("lease_policy"), std::string::npos);
  const auto by_key =
      idem({"list", "--json", "--scope", "acme", "--operation", "POST /charges", "--key", "k"});
  EXPECT_NE(by_key.output.find(ref), std::string::npos);
}

TEST_F(KeysCommand, an_error_names_the_option_not_the_parameter_of_the_api) {
  const auto wrong = idem({"list", "--older-than", "soon"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.output;
  EXPECT_NE(wrong.output.find("idem keys list: --older-than: "), std::string::npos) << wrong.output;
  const auto lonely = idem({"list", "--key", "k"});
  EXPECT_NE(lonely.output.find("idem keys: --key: "), std::string::npos) << lonely.output;
}

TEST_F(KeysCommand, pages_go_on_with_a_cursor) {
  for (int i = 0; i < 3; ++i) ask(charge(fmt::format("k{}", i)));
  const auto first = parse_json(idem({"list", "--json", "--limit", "2"}).output).value_or(Json{});
  EXPECT_EQ(first["keys"].items.size(), 2U);
  const auto cursor = first["next"].string;
  EXPECT_NE(idem({"list", "--limit", "2"}).output.find("--cursor " + cursor), std::string::npos);
  const auto rest =
      parse_json(idem({"list", "--json", "--cursor", cursor}).output).value_or(Json{});
  EXPECT_EQ(rest["keys"].items.size(), 1U);
  EXPECT_EQ(rest["next"].kind, Json::Kind::null);
}

TEST_F(KeysCommand, lists_the_oldest_first_with_their_age_and_why_they_are_as_they_are) {
  std::vector<std::string> refs;
  for (int i = 0; i < 12; ++i) {
    ask(charge(fmt::format("k{}", i), i == 3 ? "drop-after" : i == 5 ? "refuse=429" : ""));
    const Json page = read(fmt::format("/v1/keys?scope=acme&operation=POST+/charges&key=k{}", i));
    refs.push_back(page["keys"].items.at(0)["ref"].string);
    EXPECT_FALSE(page["keys"].items[0]["contested"].boolean);
    EXPECT_FALSE(page["now"].string.empty());
  }
  // Two may have been made in the same millisecond, so only what is apart is compared.
  const auto created = [&](const std::string& ref) {
    return read("/v1/keys/" + ref)["created_at"].string;
  };
  const auto listed = idem({"list"});
  EXPECT_EQ(listed.exit_code, 0);
  std::size_t last = 0;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const auto at = listed.output.find(refs[i]);
    ASSERT_NE(at, std::string::npos);
    if (i > 0 && created(refs[i - 1]) != created(refs[i])) {
      EXPECT_GT(at, last) << listed.output;
    }
    last = at;
  }
  for (const auto* part : {"AGE", "CONTESTED", "REASON", "declared: "}) {
    EXPECT_NE(listed.output.find(part), std::string::npos) << listed.output;
  }
  EXPECT_NE(listed.output.find("no provider is asked"), std::string::npos) << listed.output;
  const auto none = idem({"list", "--newer-than", "2100-01-01T00:00:00Z"});
  EXPECT_EQ(none.output.find(refs[0]), std::string::npos) << none.output;
  EXPECT_NE(idem({"list", "--newer-than", "24h"}).output.find(refs[0]), std::string::npos);
}

TEST_F(KeysCommand, V36_a_decision_is_kept_under_the_name_of_the_logged_in_user) {
  ask(charge("k", "refuse=500"));
  const Json record = only("completed");
  const auto released = idem({"release", record["ref"].string, "--fence",
                              std::to_string(record["fence"].integer), "--reason", "r"},
                             {"USER=hopper"});
  EXPECT_EQ(released.exit_code, 0) << released.output;
  EXPECT_NE(released.output.find("operator:hopper@"), std::string::npos) << released.output;
}

TEST_F(KeysCommand, V36_releases_a_stored_5xx_in_the_operators_name) {
  ask(charge("k", "refuse=500"));
  const Json record = only("completed");
  const auto ref = record["ref"].string;
  const auto fence = std::to_string(record["fence"].integer);
  const auto released = idem({"release", ref, "--fence", fence, "--reason", "deployed the fix"},
                             {"IDEM_OPERATOR=grace"});
  EXPECT_EQ(released.exit_code, 0) << released.output;
  EXPECT_NE(released.output.find("failed_retryable"), std::string::npos);
  EXPECT_NE(released.output.find("operator:grace"), std::string::npos) << released.output;
  EXPECT_NE(released.output.find("deployed the fix"), std::string::npos);
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(idem({"release", ref, "--fence", fence, "--reason", "again"}).exit_code, 5);
}

TEST_F(KeysCommand, V29_resolves_an_unknown_with_the_answer_that_its_caller_shall_have) {
  ask(charge("k", "drop-after"));
  const Json lost = only("unknown");
  const auto ref = lost["ref"].string;
  const auto file = dir_.path() / "answer.json";
  std::ofstream(file) << R"({"id":"ch_1"})";
  std::vector<std::string> words{"resolve",     ref,
                                 "--as",        "completed",
                                 "--fence",     std::to_string(lost["fence"].integer + 1),
                                 "--evidence",  "ch_1 exists",
                                 "--reason",    "ticket 4711",
                                 "--status",    "201",
                                 "--header",    "Content-Type: application/json",
                                 "--body-file", file.string()};
  const auto stale = idem(words);
  EXPECT_EQ(stale.exit_code, 5);
  EXPECT_NE(stale.output.find("fence " + std::to_string(lost["fence"].integer)), std::string::npos)
      << stale.output;
  words[5] = std::to_string(lost["fence"].integer);
  const auto resolved = idem(words);
  EXPECT_EQ(resolved.exit_code, 0) << resolved.output;
  const auto replay = ask(charge("k"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(replay.body, R"({"id":"ch_1"})");
  EXPECT_EQ(replay.get("Content-Type"), "application/json");
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(KeysCommand, exit_codes_name_the_result) {
  const std::string none(32, '0');
  const std::pair<std::vector<std::string>, int> cases[] = {
      {{"show", none}, 4},
      {{"release", none, "--fence", "1", "--reason", "r"}, 4},
      {{"show", "17"}, 2},
      {{"list", "--state", "broken"}, 2},
      {{"list", "--limit", "ten"}, 2},
      {{"list", "--limit", "0"}, 2},
      {{"list", "--newer-than", "soon"}, 2},
      {{"list", "--unheard-of"}, 2},
      {{"release", none, "--fence", "1"}, 2},
      {{"release", none, "--reason", "r"}, 2},
      {{"release", none, "--fence", "1", "--reason", "r", "--operator", "a\r\nHost: b"}, 2},
      {{"release", none, "--fence", "1", "--reason", "r", "--operator", ""}, 2},
      {{"resolve", none, "--as", "completed", "--fence", "1", "--evidence", "e", "--reason", "r"},
       2},
      {{}, 2},
      {{"forget"}, 2},
      {{"list", "--admin-url", "ftp://127.0.0.1"}, 2},
      {{"list", "--admin-url", "https://" + unused_address()}, 3},
      {{"list", "--admin-url", "http://" + unused_address()}, 3},
      {{"list", "--help"}, 0}};
  for (const auto& [words, code] : cases) {
    const auto ran = idem(words);
    EXPECT_EQ(ran.exit_code, code) << fmt::format("{}", fmt::join(words, " ")) << "\n"
                                   << ran.output;
    EXPECT_FALSE(ran.output.empty());
  }
  const auto url = idem({"list", "--admin-url", "foo"});
  EXPECT_EQ(url.exit_code, 2);
  EXPECT_EQ(url.output.find("upstream"), std::string::npos) << url.output;
  const auto word = idem({"lst"});
  EXPECT_EQ(word.exit_code, 2);
  EXPECT_NE(word.output.find("idem keys: there is no command \"lst\""), std::string::npos)
      << word.output;
  const auto misspelt = idem({"list"}, {"IDEM_ADMN_URL=http://x", "IDEM_SOMETHING=1"});
  EXPECT_EQ(misspelt.exit_code, 0);
  EXPECT_NE(misspelt.output.find("IDEM_ADMN_URL: warning: is no variable of this version"),
            std::string::npos)
      << misspelt.output;
  EXPECT_EQ(misspelt.output.find("IDEM_SOMETHING"), std::string::npos) << misspelt.output;
  // A flag beats the environment.
  EXPECT_EQ(idem({"list", "--admin-url", "http://" + gateway_->admin()},
                 {"IDEM_ADMIN_URL=http://" + unused_address()})
                .exit_code,
            0);
}

TEST_F(KeysCommand, terminals_are_not_driven_by_bytes_of_clients) {
  auto request = without(charge("k"), "X-Tenant-Id");
  request.fields.push_back({"X-Tenant-Id", "ac\tme\xC2\x9B"});
  ASSERT_EQ(ask(request).status, 201);
  const auto listed = idem({"list"});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_NE(listed.output.find("ac?me?"), std::string::npos) << listed.output;
}

using KeysClient = Scripted;

TEST_F(KeysClient, another_server_or_a_cut_answer_counts_as_not_reachable) {
  for (const auto* answer : {"hello\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", ""}) {
    ScriptedUpstream other([answer](UpstreamConnection& connection) {
      connection.read_request();
      connection.write(answer);
      connection.close();
    });
    const auto ran = run_program(built_program("idem"),
                                 {"keys", "list", "--admin-url", "http://" + other.address()});
    EXPECT_EQ(ran.exit_code, 3) << answer << ran.output;
  }
  ScriptedUpstream broken([](UpstreamConnection& connection) {
    connection.read_request();
    connection.write("HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
    connection.close();
  });
  EXPECT_EQ(run_program(built_program("idem"),
                        {"keys", "list", "--admin-url", "http://" + broken.address()})
                .exit_code,
            1);
}

TEST_F(KeysClient, V31_json_of_another_server_is_no_good_news) {
  ScriptedUpstream other([](UpstreamConnection& connection) {
    connection.read_request();
    connection.write(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{\"ok\":true}\r\n0\r\n\r\n");
    connection.close();
  });
  const std::string none(32, '0');
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"status"},
                                             {"status", "--json"},
                                             {"keys", "list"},
                                             {"keys", "list", "--limit", "5"},
                                             {"keys", "show", none},
                                             {"outbox", "list"},
                                             {"outbox", "show", none},
                                             {"dlq", "redrive", "--all", "--reason", "r"}}) {
    auto all = words;
    all.insert(all.end(), {"--admin-url", "http://" + other.address()});
    const auto ran = run_program(built_program("idem"), all);
    EXPECT_EQ(ran.exit_code, 1) << ran.output;
    EXPECT_NE(ran.output.find("no answer of the admin API"), std::string::npos) << ran.output;
    EXPECT_EQ(ran.output.find("all is well"), std::string::npos) << ran.output;
  }
}

}  // namespace
}  // namespace idem::test
