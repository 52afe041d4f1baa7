#include <algorithm>
#include <regex>
#include <sstream>

#include "cli/settings/settings_changes.hpp"
#include "config/reading.hpp"
#include "support/json.hpp"

/// Wrong files, each with its complaint and the place; and right files.
namespace idem::test {
namespace {

/// "# LINE:COLUMN: PART" at the beginning of a file: an error there, with that part of a sentence.
struct Expected {
  std::string place;
  std::string part;
};

std::vector<Expected> expected_of(const std::string& text) {
  const std::regex header(R"re(^# (\d+:\d+): (.*)$)re");
  std::vector<Expected> expected;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line) && std::regex_match(line, match, header);) {
    expected.push_back({match[1], match[2]});
  }
  return expected;
}

TEST(ConfigCorpus, every_wrong_file_is_refused_at_its_place_and_with_its_reason) {
  const auto files = files_of(corpus("wrong"));
  EXPECT_GE(files.size(), 50U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const auto expected = expected_of(read_file(file));
    ASSERT_FALSE(expected.empty()) << "no header that says what is wrong";
    const auto read = read_config(file);
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().size(), expected.size()) << joined(read.error());
    for (std::size_t i = 0; i < std::min(expected.size(), read.error().size()); ++i) {
      const auto& line = read.error()[i];
      EXPECT_TRUE(line.starts_with(file.string() + ":" + expected[i].place + ": ")) << line;
      EXPECT_NE(line.find(expected[i].part), std::string::npos)
          << line << "\nwithout: " << expected[i].part;
    }
  }
}

void expect_equal(const gateway::Route& a, const gateway::Route& b) {
  SCOPED_TRACE(b.path.text());
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.formerly, b.formerly);
  EXPECT_EQ(a.methods, b.methods);
  EXPECT_EQ(a.path.text(), b.path.text());
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.enforce, b.enforce);
  EXPECT_EQ(a.require_key, b.require_key);
  EXPECT_EQ(a.allow_method_override, b.allow_method_override);
  EXPECT_EQ(a.pin_logins, b.pin_logins);
  EXPECT_EQ(a.answers.preset, b.answers.preset);
  EXPECT_EQ(a.answers.statuses, b.answers.statuses);
  EXPECT_EQ(a.answers.errors_rolled_back, b.answers.errors_rolled_back);
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.upstream_timeout, b.upstream_timeout);
  EXPECT_EQ(a.lease, b.lease);
  EXPECT_EQ(a.lease_policy, b.lease_policy);
  EXPECT_EQ(a.retention, b.retention);
  EXPECT_EQ(a.tombstone, b.tombstone);
  EXPECT_EQ(a.wait_max, b.wait_max);
  EXPECT_EQ(a.request_body_bytes_max, b.request_body_bytes_max);
  EXPECT_EQ(a.response_body_bytes_max, b.response_body_bytes_max);
  EXPECT_EQ(a.store_body, b.store_body);
  EXPECT_EQ(a.replay_fields, b.replay_fields);
  EXPECT_EQ(a.separate_dispatch_mark, b.separate_dispatch_mark);
  EXPECT_EQ(a.respond_async, b.respond_async);
  EXPECT_EQ(a.async_keep_fields, b.async_keep_fields);
  EXPECT_EQ(a.async_running_max, b.async_running_max);
  EXPECT_EQ(a.async_tenant_max, b.async_tenant_max);
}

TEST(ConfigCorpus, every_right_file_is_accepted_and_its_printed_form_means_the_same) {
  TempDir dir;
  const auto files = files_of(corpus("right"));
  EXPECT_GE(files.size(), 5U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const auto read = read_config(file);
    ASSERT_TRUE(read.has_value()) << joined(read.error());
    const auto printed = cli::print_settings(read->given);
    write_text(dir.path() / "printed.yaml", printed);
    const auto again = read_config(dir.path() / "printed.yaml");
    ASSERT_TRUE(again.has_value()) << joined(again.error()) << printed;
    EXPECT_EQ(cli::print_settings(again->given), printed);
    const auto json = cli::print_settings_as_json(read->given);
    EXPECT_TRUE(parse_json(json)) << json;
    write_text(dir.path() / "printed.json", json);
    const auto from_json = read_config(dir.path() / "printed.json");
    ASSERT_TRUE(from_json.has_value()) << joined(from_json.error()) << json;
    EXPECT_EQ(cli::print_settings(from_json->given), printed) << json;
    const auto& routes = read->options.settings.routes.all();
    const auto& same = again->options.settings.routes.all();
    ASSERT_EQ(same.size(), routes.size());
    for (std::size_t i = 0; i < routes.size(); ++i) expect_equal(same[i], routes[i]);
    EXPECT_TRUE(cli::changed_for_restart(read->given, again->given).empty());
  }
}

TEST(ConfigCorpus, more_errors_than_a_screen_holds_are_counted) {
  TempDir dir;
  std::string text = "routes:\n";
  for (int i = 0; i < 30; ++i) text += "  - {match: {path: x" + std::to_string(i) + "}}\n";
  write_text(dir.path() / "many.yaml", text);
  const auto read = read_config(dir.path() / "many.yaml");
  ASSERT_FALSE(read.has_value());
  ASSERT_EQ(read.error().size(), limits::config_complaints_max + 1);
  EXPECT_EQ(read.error().back(), "and 12 more");  // 30 paths, no upstream, no scope.
}

TEST(ConfigCorpus, files_are_bounded) {
  TempDir dir;
  const auto refused = [&](const std::string& text, std::string_view part) {
    write_text(dir.path() / "large.yaml", text);
    const auto read = read_config(dir.path() / "large.yaml");
    ASSERT_FALSE(read.has_value());
    EXPECT_NE(joined(read.error()).find(part), std::string::npos) << joined(read.error());
  };
  refused(std::string(limits::config_file_bytes_max + 1, '#'), "more than 1MiB");
  refused(std::string(100'000, '['), "this is");
  std::string many = "routes:\n";
  for (std::size_t i = 0; i <= limits::routes_max; ++i) many += "  - {match: {path: /a}}\n";
  refused(many, "more entries than any setting has");
  std::string list = "key:\n  headers:\n";
  for (std::size_t i = 0; i <= limits::config_entries_max; ++i) {
    list += "    - X-" + std::to_string(i) + "\n";
  }
  refused(list, "key.headers has more than 64 entries");
  std::string map;
  for (int i = 0; i < 100'000; ++i) map += "k" + std::to_string(i) + ": 1\n";
  refused(map, "more entries than any setting has");
}

TEST(ConfigCorpus, a_file_that_is_not_there_is_named) {
  for (const auto* path : {"/no/such/file.yaml", "/"}) {
    const auto read = read_config(path);
    ASSERT_FALSE(read.has_value());
    EXPECT_TRUE(read.error().front().starts_with("--config: \"" + std::string(path) + "\""))
        << read.error().front();
  }
}

}  // namespace
}  // namespace idem::test
