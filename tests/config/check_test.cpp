#include "cli/settings/config_check.hpp"

#include "config/reading.hpp"
#include "support/gateway_fixture.hpp"

/// The findings of `idem config check` that the texts alone do not show.
namespace idem::test {
namespace {

class ConfigCheck : public testing::Test {
 protected:
  std::string file() const { return (dir_.path() / "idem.yaml").string(); }
  cli::ReadSettings read(const std::string& text) {
    write_text(file(),
               "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: authorization}\n" + text);
    auto settings = read_config(file());
    EXPECT_TRUE(settings.has_value()) << joined(settings.error());
    return std::move(*settings);
  }
  std::vector<std::string> missing(const std::string& text) {
    config::Complaints complaints;
    cli::check_named_files(read(text), complaints);
    return complaints.lines();
  }
  std::vector<std::string> warnings(const std::string& text) {
    config::Complaints complaints;
    cli::warn_of_laxer_routes(read(text), complaints);
    return complaints.lines();
  }
  void expect_missing(const std::string& text, const std::string& place, std::string_view part) {
    const auto complaints = missing(text);
    ASSERT_EQ(complaints.size(), 1U) << text << joined(complaints);
    EXPECT_TRUE(complaints.front().starts_with(file() + ":" + place + ": ")) << complaints.front();
    EXPECT_NE(complaints.front().find(part), std::string::npos) << complaints.front();
  }
  TempDir dir_;
};

TEST_F(ConfigCheck, config_check_names_missing_files_at_their_place) {
  const auto here = dir_.path().string();
  EXPECT_TRUE(missing("store: \"sqlite:" + here + "/new.db\"\nspill_dir: " + here + "\n").empty());
  EXPECT_TRUE(missing("store: \"memory:\"\n").empty());
  expect_missing("store: \"sqlite:" + here + "/no/idem.db\"\n", "3:8", "/no\" is no directory");
  expect_missing("store: \"sqlite:" + here + "\"\n", "3:8", "is a directory");
  expect_missing("spill_dir: " + here + "/no\n", "3:12", "is no directory");
  expect_missing("spill_dir: " + file() + "\n", "3:12", "is no directory");
  const auto files =
      missing("tls: {cert: /no/cert.pem, key: /no/key.pem, client_ca: /no/ca.pem}\n");
  ASSERT_EQ(files.size(), 3U) << joined(files);
  EXPECT_TRUE(files[1].starts_with(file() + ":3:32: \"/no/key.pem\" cannot be read")) << files[1];
  expect_missing("tls: {cert: " + file() + ", key: " + file() + "}\n", "3:13", "");
}

TEST_F(ConfigCheck, a_password_of_a_url_is_in_no_message) {
  for (const std::string text : {"store: \"oracle://idem:s3cret@db/idem\"\n",
                                 "authorize: {url: \"ftp://idem:s3cret@auth/\"}\n",
                                 "authorize: {url: \"http://idem:/s3cret@auth\"}\n"}) {
    write_text(file(),
               "upstream: {url: \"http://idem:s3cret@db\"}\nscope: {from: authorization}\n" + text);
    const auto complaints = read_config(file());
    ASSERT_FALSE(complaints.has_value());
    EXPECT_EQ(complaints.error().size(), 2U) << joined(complaints.error());
    EXPECT_EQ(joined(complaints.error()).find("s3cret"), std::string::npos)
        << joined(complaints.error());
  }
}

TEST_F(ConfigCheck, P03_a_laxer_rest_is_warned_of_because_paths_are_compared_as_they_are_sent) {
  const std::string strict =
      "  - {match: {methods: [POST], path: /v1/payments}, require_key: true}\n";
  const auto rest = warnings("defaults: {require_key: false}\nroutes:\n" + strict);
  ASSERT_EQ(rest.size(), 1U) << joined(rest);
  EXPECT_TRUE(rest.front().starts_with(file() + ":3:25: warning: /v1/payments needs a key"))
      << rest.front();
  const auto route = warnings("routes:\n" + strict +
                              "  - {match: {path: \"/v1/{rest...}\"}, require_key: false}\n");
  ASSERT_EQ(route.size(), 1U) << joined(route);
  EXPECT_TRUE(route.front().starts_with(file() + ":5:51: warning: ")) << route.front();

  const auto segment =
      warnings("routes:\n" + strict + "  - {match: {path: \"/v1/{any}\"}, require_key: false}\n");
  EXPECT_EQ(segment.size(), 1U) << joined(segment);

  for (const auto& fine : std::vector<std::string>{
           "routes:\n" + strict, "defaults: {require_key: false}\n",
           "defaults: {require_key: false}\nroutes:\n"
           "  - {match: {methods: [PUT], path: /v1/a}, require_key: true}\n",
           "routes:\n" + strict + "  - {match: {path: /v1/quotes}, require_key: false}\n",
           "routes:\n" + strict +
               "  - {match: {methods: [PUT], path: \"/v1/{rest...}\"}, require_key: false}\n",
           "routes:\n" + strict + "  - {match: {path: /v1/payments}, require_key: false}\n",
           "routes:\n" + strict + "  - {match: {path: \"/v2/{rest...}\"}, require_key: false}\n"}) {
    EXPECT_TRUE(warnings(fine).empty()) << fine << joined(warnings(fine));
  }
}

TEST_F(ConfigCheck, S08_each_route_that_allows_another_method_is_named) {
  const auto named = [&](const std::string& text) {
    config::Complaints complaints;
    cli::warn_of_method_overrides(read(text), complaints);
    return complaints.lines();
  };
  EXPECT_TRUE(named("").empty());
  const std::string routes =
      "routes:\n  - {match: {path: /a}, allow_method_override: true}\n"
      "  - {match: {path: /b}}\n";
  const auto one = named(routes);
  ASSERT_EQ(one.size(), 1U) << joined(one);
  EXPECT_TRUE(one.front().starts_with(file() + ":4:48: warning: /a allows ")) << one.front();
  const auto all = named("defaults: {allow_method_override: true}\n" + routes);
  ASSERT_EQ(all.size(), 3U) << joined(all);
  EXPECT_TRUE(all[0].starts_with(file() + ":3:35: warning: /b allows ")) << joined(all);
  Process command(
      {.program = built_program("idem"), .arguments = {"config", "check", "--config", file()}});
  EXPECT_EQ(command.exit_code(), 0);
  EXPECT_NE(command.output().find("warning: /{rest...} allows "), std::string::npos)
      << command.output();
}

TEST_F(ConfigCheck, the_command_fails_on_missing_files_and_not_on_a_warning) {
  const std::string lax =
      "store: \"memory:\"\ndefaults: {require_key: false}\n"
      "routes:\n  - {match: {path: /a}, require_key: true}\n";
  const auto check = [&](const std::string& text) {
    read(text);
    return ProcessOptions{.program = built_program("idem"),
                          .arguments = {"config", "check", "--config", file()}};
  };
  Process warned(check(lax));
  EXPECT_EQ(warned.exit_code(), 0);
  EXPECT_NE(warned.output().find("ok\n"), std::string::npos) << warned.output();
  EXPECT_NE(warned.output().find(":4:25: warning: /a needs a key"), std::string::npos)
      << warned.output();
  Process refused(check(lax + "spill_dir: /no/such\n"));
  EXPECT_EQ(refused.exit_code(), 2);
  EXPECT_NE(refused.output().find(":7:12: \"/no/such\" is no directory"), std::string::npos)
      << refused.output();
}

}  // namespace
}  // namespace idem::test
