#include "cli/settings/settings_changes.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "cli/settings/noted_settings.hpp"
#include "cli/settings/reload.hpp"
#include "config/reading.hpp"
#include "support/temp_dir.hpp"

/// What a reload would change, and what that does to records.
namespace idem::cli {
namespace {

const std::string base =
    "upstream: { url: \"http://127.0.0.1:9\" }\n"
    "scope: { from: authorization }\n";

class SettingsChanges : public testing::Test {
 protected:
  admin::SettingsDifference between(const std::string& before, const std::string& after) {
    const auto running = flags_of(base + before);
    EXPECT_TRUE(running.has_value());
    write(base + after);
    return read_again(source_, running.value_or(GatewayFlags{})).difference;
  }
  static const admin::SettingChange& of(const admin::SettingsDifference& difference,
                                        const std::string& name) {
    static const admin::SettingChange none{};
    for (const auto& one : difference.changes) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << name << " is not among the changes";
    return none;
  }

 private:
  std::optional<GatewayFlags> flags_of(const std::string& text) {
    write(text);
    const auto read = source_.read();
    if (!read) return std::nullopt;
    return read->given;
  }
  void write(const std::string& text) {
    std::ofstream(path_) << text;
    if (has_parsed_) return;
    has_parsed_ = true;
    EXPECT_TRUE(line_.parse({"--config", path_.string()}));
  }

  test::TempDir dir_;
  std::filesystem::path path_ = dir_.path() / "idem.yaml";
  CommandLine line_;
  SettingsSource source_{line_};
  bool has_parsed_ = false;
};

TEST_F(SettingsChanges, an_untouched_file_differs_in_nothing) {
  const std::string all =
      "routes:\n  - { name: pay, match: { methods: [POST], path: /pay }, retention: 2h }\n";
  const auto difference = between(all, all + "# a comment\n");
  EXPECT_TRUE(difference.changes.empty());
  EXPECT_EQ(difference.refused, "");
}

TEST_F(SettingsChanges, names_value_before_value_after_and_the_records) {
  const auto difference =
      between("defaults: { retention: 24h }\n", "defaults: { retention: 48h, mode: wait }\n");
  EXPECT_EQ(difference.refused, "");
  ASSERT_EQ(difference.changes.size(), 2U);
  const auto& retention = of(difference, "defaults.retention");
  EXPECT_EQ(retention.before, "24h");
  EXPECT_EQ(retention.after, "48h");
  EXPECT_FALSE(retention.needs_restart);
  EXPECT_NE(retention.records.find("keep the time with which they were made"), std::string::npos);
  EXPECT_EQ(of(difference, "defaults.mode").records, "") << "no record changes";
}

TEST_F(SettingsChanges, a_setting_that_needs_a_restart_has_the_whole_refused) {
  const auto difference = between("threads: 1\n", "threads: 2\ndefaults: { lease: 90s }\n");
  EXPECT_TRUE(of(difference, "threads").needs_restart);
  EXPECT_FALSE(of(difference, "defaults.lease").needs_restart);
  EXPECT_EQ(difference.refused, "a restart is needed for threads; nothing was changed");
}

TEST_F(SettingsChanges, a_file_that_is_refused_shows_what_differs_and_why) {
  const auto difference = between("", "defaults: { lease: 1s }\n");
  EXPECT_EQ(of(difference, "defaults.lease").after, "1s");
  EXPECT_NE(difference.refused.find("idem.yaml:3:"), std::string::npos) << difference.refused;
  EXPECT_NE(between("", "nonsense: true\n").refused.find("nonsense"), std::string::npos);
}

TEST_F(SettingsChanges, routes_are_compared_by_their_name_or_by_what_they_match) {
  const std::string quotes = "  - { match: { methods: [POST], path: /quotes } }\n";
  const auto difference = between(
      "routes:\n  - { name: pay, match: { path: /pay }, fingerprint: { exclude: [/at] } }\n"
      "  - { name: gone, match: { path: /gone } }\n" +
          quotes,
      "routes:\n" + quotes +
          "  - { name: pay, match: { path: /v2/pay }, fingerprint: { exclude: [/at, /by] } }\n"
          "  - { name: new, match: { path: /new } }\n");
  EXPECT_NE(of(difference, "routes.pay.match.path").records.find("hide a record"),
            std::string::npos);
  EXPECT_NE(of(difference, "routes.pay.fingerprint.exclude").records.find("422 with retry: never"),
            std::string::npos);
  EXPECT_EQ(of(difference, "routes.gone").after, "");
  EXPECT_EQ(of(difference, "routes.new").before, "");
  EXPECT_NE(of(difference, "routes").records.find("first route that matches"), std::string::npos);
  EXPECT_EQ(difference.changes.size(), 5U);
  EXPECT_EQ(difference.refused, "");
}

TEST_F(SettingsChanges, V33_no_password_is_shown) {
  const std::string before = "store: \"postgres://idem:canary@db/idem\"\n";
  for (const char* const url :
       {"postgres://idem:canary2@db/idem", "postgres://db/idem?user=idem&password=canary3",
        "postgres://db/idem?password=canary4&user=idem",
        "hybrid:?truth=postgres://idem@db/idem&fast=redis://:canary5@cache",
        "hybrid:?truth=postgres://idem:canary6@db&fast=redis://:canary7@cache:6379",
        "hybrid:?truth=postgres%3A%2F%2Fidem%3Acanary8%40db%2Fidem&fast=redis://cache",
        "hybrid:?truth=postgres%3A%2F%2Fdb%2Fidem%3Fpassword%3Dcanary9&fast=redis://cache"}) {
    const auto difference = between(before, "store: \"" + std::string(url) + "\"\n");
    const auto& store = of(difference, "store");
    EXPECT_TRUE(store.needs_restart);
    EXPECT_EQ((store.before + store.after).find("canary"), std::string::npos)
        << store.before << '\n'
        << store.after;
    const auto read = test::read_settings(
        {"--upstream", "http://127.0.0.1:9", "--scope", "static:x", "--store", url});
    ASSERT_TRUE(read.has_value()) << test::joined(read.error());
    EXPECT_FALSE(print_settings(read->given).contains("canary"));
    EXPECT_FALSE(print_settings_as_json(read->given).contains("canary"));
    for (const auto& noted : noted_settings(read->given, Purpose::gateway, {})) {
      EXPECT_FALSE(noted.shown.contains("canary")) << noted.shown;
    }
  }
}

TEST_F(SettingsChanges, destinations_and_providers_need_a_restart) {
  const std::string first =
      "providers:\n  - { name: p, found: [2xx], url: \"http://bank/?at={operation}\", timeout: ";
  const auto difference = between(first + "5s }\n", first + "6s }\n");
  EXPECT_TRUE(of(difference, "providers.p.timeout").needs_restart);
  EXPECT_EQ(difference.refused, "a restart is needed for providers.p.timeout; nothing was changed");
}

}  // namespace
}  // namespace idem::cli
