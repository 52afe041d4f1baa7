#include "config/reading.hpp"

/// A path in a file is relative to that file's folder, wherever the process is started.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

const std::string base = "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: authorization}\n";

class ConfigPaths : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(etc());
    fs::create_directory(elsewhere());
    fs::current_path(elsewhere());
  }
  void TearDown() override { fs::current_path(started_in_); }

  fs::path etc() const { return dir_.path() / "etc"; }
  fs::path elsewhere() const { return dir_.path() / "elsewhere"; }
  std::string in_etc(const std::string& name) const { return (etc() / name).string(); }
  std::string file(const std::string& text, const std::string& start = base) const {
    write_text(etc() / "idem.yaml", start + text);
    return in_etc("idem.yaml");
  }
  cli::GatewayFlags gathered(const std::vector<std::string>& arguments) const {
    cli::CommandLine line;
    const cli::SettingsSource source(line);
    EXPECT_TRUE(line.parse(arguments));
    config::Complaints complaints;
    auto flags = source.gather(complaints);
    EXPECT_TRUE(complaints.empty()) << joined(complaints.lines());
    return flags.value();
  }
  std::string store_of(const std::vector<std::string>& arguments) const {
    return gathered(arguments).store.text;
  }

  TempDir dir_;
  const fs::path started_in_ = fs::current_path();
};

TEST_F(ConfigPaths, a_store_of_a_file_is_the_same_wherever_it_is_started) {
  const auto given = file("store: sqlite:./data/idem.db\n");
  for (const auto& folder : {etc(), elsewhere(), fs::path("/")}) {
    fs::current_path(folder);
    EXPECT_EQ(store_of({"--config", given}), "sqlite:" + in_etc("data/idem.db"));
  }
  fs::current_path(etc());
  EXPECT_EQ(store_of({"--config", "idem.yaml"}), "sqlite:" + in_etc("data/idem.db"));
  fs::current_path(elsewhere());
  EXPECT_EQ(store_of({"--config", "../etc/idem.yaml"}), "sqlite:" + in_etc("data/idem.db"));
  EXPECT_EQ(store_of({"--config", file("store: sqlite:/var/idem.db\n")}), "sqlite:/var/idem.db");
}

TEST_F(ConfigPaths, a_default_path_lies_beside_the_file) {
  EXPECT_EQ(store_of({"--config", file("")}), "sqlite:" + in_etc("idem.db"));
  EXPECT_EQ(store_of({}), "sqlite:" + (elsewhere() / "idem.db").string());
  EXPECT_EQ(store_of({"--store", "embedded:x"}), "embedded:" + (elsewhere() / "x").string());
}

TEST_F(ConfigPaths, a_flag_and_a_variable_are_of_the_working_directory) {
  const auto given = file("store: sqlite:in-the-file.db\n");
  EXPECT_EQ(store_of({"--config", given, "--store", "sqlite:x.db"}),
            "sqlite:" + (elsewhere() / "x.db").string());
  ::setenv("IDEM_STORE", "sqlite:y.db", 1);
  EXPECT_EQ(store_of({"--config", given}), "sqlite:" + (elsewhere() / "y.db").string());
  ::unsetenv("IDEM_STORE");
}

/// The setting at `path` in a list of maps, or at the top.
std::string in_yaml(const config::Setting& setting) {
  std::string value = config::is_texts(setting.shape.kind) ? "[f.pem]" : "f.pem";
  std::string line;
  std::string close;
  std::string_view rest = setting.path;
  for (auto dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    line += std::string(rest.substr(0, dot)) + ": {";
    close += "}";
    rest.remove_prefix(dot + 1);
  }
  return line + std::string(rest) + ": " + value + close;
}

std::string text_of(const config::Setting& setting) {
  if (auto* const* given = std::get_if<config::Given*>(&setting.slot)) return (*given)->text;
  return std::get<config::GivenList*>(setting.slot)->items.at(0).text;
}

bool is_path(const config::Setting& setting) {
  return setting.shape.kind == config::Shape::Kind::path ||
         setting.shape.kind == config::Shape::Kind::paths;
}

TEST_F(ConfigPaths, every_other_path_of_a_file_is_relative_to_it_too) {
  cli::GatewayFlags names;
  std::size_t seen = 0;
  for (const auto& named : cli::settings_of(names)) {
    if (!is_path(named)) continue;
    SCOPED_TRACE(named.path);
    auto flags = gathered({"--config", file(in_yaml(named) + "\n", "")});
    for (const auto& setting : cli::settings_of(flags)) {
      if (setting.path == named.path) {
        EXPECT_EQ(text_of(setting), in_etc("f.pem"));
      }
    }
    ++seen;
  }
  EXPECT_GE(seen, 10U);
}

template <class Item, class Read>
void expect_paths_in_items(const std::string& list, Read read, const std::string& absolute,
                           const std::function<cli::GatewayFlags(const std::string&)>& gather) {
  Item names;
  std::size_t seen = 0;
  for (const auto& named : cli::settings_of(names)) {
    if (!is_path(named)) continue;
    SCOPED_TRACE(named.path);
    config::Complaints ignored;
    auto items = read(gather(list + ":\n  - {" + in_yaml(named) + "}\n"), ignored);
    ASSERT_EQ(items.size(), 1U);
    for (const auto& setting : cli::settings_of(items.front())) {
      if (setting.path == named.path) {
        EXPECT_EQ(text_of(setting), absolute);
      }
    }
    ++seen;
  }
  EXPECT_GE(seen, 2U);
}

TEST_F(ConfigPaths, so_are_those_of_destinations_and_providers) {
  const auto gather = [&](const std::string& text) {
    return gathered({"--config", file(text, "")});
  };
  expect_paths_in_items<cli::DestinationGiven>(
      "destinations",
      [](const cli::GatewayFlags& flags, auto& complaints) {
        return cli::read_destinations(flags.destinations, complaints);
      },
      in_etc("f.pem"), gather);
  expect_paths_in_items<cli::ProviderGiven>(
      "providers",
      [](const cli::GatewayFlags& flags, auto& complaints) {
        return cli::read_providers(flags.providers, complaints);
      },
      in_etc("f.pem"), gather);
}

/// A setting whose help tells of a file, and that is not read as a path, is one that was forgotten.
TEST_F(ConfigPaths, no_setting_of_a_file_is_forgotten) {
  const auto look = [](const std::vector<config::Setting>& table) {
    for (const auto& setting : table) {
      const bool is_named_so =
          setting.path.ends_with("_file") || setting.path.ends_with("_files") ||
          setting.path.ends_with("_dir") || setting.path.ends_with("ca") ||
          setting.help.starts_with("PEM file") || setting.help.starts_with("file ");
      if (is_named_so) {
        EXPECT_TRUE(is_path(setting)) << setting.path;
      }
    }
  };
  cli::GatewayFlags flags;
  cli::RouteGiven route;
  cli::DestinationGiven destination;
  cli::ProviderGiven provider;
  look(cli::settings_of(flags));
  look(cli::settings_of(route));
  look(cli::settings_of(destination));
  look(cli::settings_of(provider));
}

TEST_F(ConfigPaths, a_store_id_must_be_one) {
  const auto wrong = read_config(file("store_id: mine\n"));
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(joined(wrong.error()).find("idem.yaml:3:11: \"mine\" is no store's id"),
            std::string::npos)
      << joined(wrong.error());
  const auto right = read_config(file("store_id: 0b41cbd2-3a7e-4d53-9c3e-6f0d8f2a11aa\n"));
  ASSERT_TRUE(right.has_value()) << joined(right.error());
  EXPECT_EQ(right->options.store_id, "0b41cbd2-3a7e-4d53-9c3e-6f0d8f2a11aa");
}

}  // namespace
}  // namespace idem::test
