#include <set>

#include "config/reading.hpp"
#include "support/json.hpp"
#include "support/process.hpp"

/// The published schema of the file, against an independent implementation of JSON Schema.
namespace idem::test {
namespace {

class ConfigSchema : public testing::Test {
 protected:
  void SetUp() override {
    write_text(dir_.path() / "schema.json", cli::settings_schema());
    std::vector<std::string> arguments{corpus("validate.py").string(),
                                       (dir_.path() / "schema.json").string()};
    for (const auto* folder : {"right", "wrong"}) {
      for (const auto& file : files_of(corpus(folder))) {
        if (!unreadable.contains(file.stem().string())) arguments.push_back(file.string());
      }
    }
    Process process({.program = "/usr/bin/python3", .arguments = arguments});
    const bool done = process.wait_for_line("done").has_value();
    output_ = process.output();
    if (done) return;
    if (required("IDEM_REQUIRE_EXTERNAL")) FAIL() << output_;
    GTEST_SKIP() << "python3 with jsonschema and yaml is needed: " << output_;
  }

  bool refused(const std::filesystem::path& file) const {
    return output_.find(file.string() + " refused: ") != std::string::npos;
  }
  bool valid(const std::filesystem::path& file) const {
    return output_.find(file.string() + " valid") != std::string::npos;
  }

  /// Texts that are no YAML, or have no JSON form.
  const std::set<std::string> unreadable{"not_utf8",  "control_character", "lone_carriage_return",
                                         "tab",       "not_closed",        "bad_indent",
                                         "merge_key", "second_document",   "complex_key"};
  TempDir dir_;
  std::string output_;
};

TEST_F(ConfigSchema, admits_every_document_that_the_gateway_admits) {
  for (const auto& file : files_of(corpus("right"))) EXPECT_TRUE(valid(file)) << output_;
}

TEST_F(ConfigSchema, refuses_a_document_of_the_wrong_shape) {
  for (const auto* name : {"unknown_key",           "unknown_key_in_section",
                           "unknown_key_in_route",  "unknown_word",
                           "section_is_text",       "section_is_empty",
                           "value_is_missing",      "value_is_a_list",
                           "list_is_text",          "list_of_numbers",
                           "number_is_text",        "number_too_large",
                           "number_with_point",     "truth_in_quotes",
                           "text_is_a_number",      "duration_without_unit",
                           "duration_unknown_unit", "size_decimal",
                           "lease_negative",        "lease_null",
                           "route_without_match",   "route_without_path",
                           "status_out_of_range",   "status_word",
                           "errors_word",           "routes_is_map",
                           "list_at_top",           "text_at_top",
                           "text_is_empty",         "dotted_keys",
                           "dotted_key_in_route",   "status_two_spellings"}) {
    EXPECT_TRUE(refused(corpus("wrong") / (std::string(name) + ".yaml"))) << name << output_;
  }
}

/// The names of all settings below a schema's object, as the table writes them.
void collect(const Json& object, const std::string& prefix, std::set<std::string>& names) {
  for (const auto& [name, inner] : object["properties"].members) {
    if (inner["properties"].members.empty()) {
      names.insert(prefix + name);
    } else {
      collect(inner, prefix + name + ".", names);
    }
  }
}

std::set<std::string> paths_of(const std::vector<config::Setting>& table) {
  std::set<std::string> paths;
  for (const auto& setting : table) paths.emplace(setting.path);
  return paths;
}

TEST(ConfigSchemaNames, are_those_of_the_table) {
  const auto schema = parse_json(cli::settings_schema());
  ASSERT_TRUE(schema.has_value());
  cli::GatewayFlags flags;
  std::set<std::string> names;
  collect(*schema, "", names);
  EXPECT_EQ(names, paths_of(cli::settings_of(flags)));
  cli::RouteGiven route;
  std::set<std::string> of_routes;
  collect((*schema)["properties"]["routes"]["items"], "", of_routes);
  EXPECT_EQ(of_routes, paths_of(cli::settings_of(route)));
  cli::DestinationGiven destination;
  std::set<std::string> of_destinations;
  collect((*schema)["properties"]["destinations"]["items"], "", of_destinations);
  EXPECT_EQ(of_destinations, paths_of(cli::settings_of(destination)));
  cli::ProviderGiven provider;
  std::set<std::string> of_providers;
  collect((*schema)["properties"]["providers"]["items"], "", of_providers);
  EXPECT_EQ(of_providers, paths_of(cli::settings_of(provider)));
}

}  // namespace
}  // namespace idem::test
