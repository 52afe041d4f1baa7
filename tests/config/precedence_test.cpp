#include <cstdlib>
#include <set>

#include "cli/settings/settings_changes.hpp"
#include "config/reading.hpp"
#include "core/bytes/ascii.hpp"

/// Every setting is a flag, a variable and a key; a flag beats the environment beats the file.
namespace idem::test {
namespace {

/// A variable of this process for as long as it lives.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
};

class ConfigPrecedence : public testing::Test {
 protected:
  // The default store lies in the working directory, or beside the file: here that is one.
  void SetUp() override { std::filesystem::current_path(dir_.path()); }
  void TearDown() override { std::filesystem::current_path(started_in_); }

  std::filesystem::path file(std::string_view text) {
    write_text(dir_.path() / "idem.yaml", text);
    return dir_.path() / "idem.yaml";
  }
  TempDir dir_;
  const std::filesystem::path started_in_ = std::filesystem::current_path();
};

const std::string enough_text =
    "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: authorization}\n";
const std::vector<std::string> enough_flags{"--upstream", "http://127.0.0.1:9", "--scope",
                                            "authorization"};

std::string lease_of(const std::expected<cli::ReadSettings, std::vector<std::string>>& read) {
  return read ? read->given.rest.one("lease").text : joined(read.error());
}

TEST_F(ConfigPrecedence, a_flag_beats_the_environment_beats_the_file_beats_the_default) {
  const auto plain = file(enough_text).string();
  EXPECT_EQ(lease_of(read_settings({"--config", plain})), "60s");
  const auto path = file(enough_text + "defaults: {lease: 61s}\n").string();
  EXPECT_EQ(lease_of(read_settings({"--config", path})), "61s");
  const Variable lease("IDEM_LEASE", "62s");
  EXPECT_EQ(lease_of(read_settings({"--config", path})), "62s");
  EXPECT_EQ(lease_of(read_settings({"--config", path, "--lease", "63s"})), "63s");
  const Variable config("IDEM_CONFIG", path);
  EXPECT_EQ(lease_of(read_settings({})), "62s");
}

TEST_F(ConfigPrecedence, an_empty_variable_is_ignored) {
  const Variable lease("IDEM_LEASE", "");
  EXPECT_EQ(lease_of(read_settings(enough_flags)), "60s");
}

TEST_F(ConfigPrecedence, an_error_names_where_the_value_came_from) {
  auto flags = enough_flags;
  flags.insert(flags.end(), {"--lease", "1"});
  const auto by_flag = read_settings(flags);
  ASSERT_FALSE(by_flag.has_value());
  EXPECT_TRUE(by_flag.error().front().starts_with("--lease: \"1\" is no duration"))
      << by_flag.error().front();
  const Variable preset("IDEM_PRESET", "strip");
  const auto by_variable = read_settings(enough_flags);
  ASSERT_FALSE(by_variable.has_value());
  EXPECT_EQ(by_variable.error().front(),
            "IDEM_PRESET: \"strip\" is none of ietf, stripe or lenient; did you mean stripe?");
}

TEST_F(ConfigPrecedence, a_setting_given_twice_is_an_error_and_a_list_is_not) {
  for (const std::vector<std::string>& twice :
       {std::vector<std::string>{"--lease", "60s", "--lease", "61s"},
        {"--listen", "a:1", "--listen", "a:1"},
        {"--migrate", "--migrate=false"},
        {"--config", "a", "--config", "b"},
        {"--upstream-verify", "true", "--upstream-verify", "false"}}) {
    auto flags = twice.front() == "--config" ? std::vector<std::string>{} : enough_flags;
    flags.insert(flags.end(), twice.begin(), twice.end());
    const auto read = read_settings(flags);
    ASSERT_FALSE(read.has_value()) << twice.front();
    EXPECT_TRUE(read.error().front().starts_with("usage: ")) << read.error().front();
  }
  auto flags = enough_flags;
  flags.insert(flags.end(), {"--key-header", "A", "--key-header", "B"});
  const auto read = read_settings(flags);
  ASSERT_TRUE(read.has_value()) << joined(read.error());
  EXPECT_EQ(read->options.settings.key_headers, (std::vector<std::string>{"A", "B"}));
}

TEST_F(ConfigPrecedence, a_list_in_a_variable_is_separated_by_commas) {
  const Variable headers("IDEM_KEY_HEADER", "A,B");
  const auto read = read_settings(enough_flags);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->options.settings.key_headers, (std::vector<std::string>{"A", "B"}));
}

/// Some value of a setting's shape that is not its default.
std::string other_value(const config::Setting& setting) {
  switch (setting.shape.kind) {
    case config::Shape::Kind::word:
      return std::string(setting.shape.words.substr(setting.shape.words.rfind('|') + 1));
    case config::Shape::Kind::truth:
      return std::get<cli::Given*>(setting.slot)->text == "true" ? "false" : "true";
    case config::Shape::Kind::number:
      return "7";
    case config::Shape::Kind::duration:
      return "77s";
    case config::Shape::Kind::size:
      return "77KiB";
    case config::Shape::Kind::path:
    case config::Shape::Kind::paths:
      return "/other";
    case config::Shape::Kind::store:
      return "sqlite:/other";
    case config::Shape::Kind::text:
    case config::Shape::Kind::texts:
    case config::Shape::Kind::statuses:
    case config::Shape::Kind::maps:
      return "other";
  }
  return "";
}

std::string yaml_line(const config::Setting& setting, std::string value) {
  if (config::is_texts(setting.shape.kind)) value = "[" + value + "]";
  std::string line;
  std::size_t open = 0;
  std::string_view rest = setting.path;
  for (auto dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    line += std::string(rest.substr(0, dot)) + ": {";
    rest.remove_prefix(dot + 1);
    ++open;
  }
  return line + std::string(rest) + ": " + value + std::string(open, '}') + "\n";
}

std::string variable_of(std::string_view flag) {
  std::string name = "IDEM_";
  for (const char c : flag.substr(2)) name += c == '-' ? '_' : upper_letter(c);
  return name;
}

std::string printed(std::vector<std::string> arguments) {
  cli::CommandLine line;
  const cli::SettingsSource source(line);
  EXPECT_TRUE(line.parse(std::move(arguments)));
  config::Complaints complaints;
  return cli::print_settings(source.gather(complaints).value());
}

TEST_F(ConfigPrecedence, every_setting_is_a_flag_a_variable_and_a_key_with_one_meaning) {
  cli::GatewayFlags flags;
  const auto nothing = printed({});
  std::size_t seen = 0;
  for (const auto& setting : cli::settings_of(flags)) {
    if (setting.shape.kind == config::Shape::Kind::maps) continue;  // Only in the file.
    SCOPED_TRACE(setting.path);
    ++seen;
    const auto value = other_value(setting);
    const auto by_flag = printed({std::string(setting.flag) + "=" + value});
    EXPECT_NE(by_flag, nothing);
    EXPECT_EQ(printed({"--config", file(yaml_line(setting, value)).string()}), by_flag);
    const Variable variable(variable_of(setting.flag), value);
    EXPECT_EQ(printed({}), by_flag);
  }
  EXPECT_GT(seen, 40U);
}

TEST_F(ConfigPrecedence, T32_an_empty_text_switches_nothing_off) {
  cli::GatewayFlags flags;
  std::size_t seen = 0;
  for (const auto& setting : cli::settings_of(flags)) {
    const auto kind = setting.shape.kind;
    if (!config::is_text(kind) && !config::is_texts(kind)) continue;
    SCOPED_TRACE(setting.path);
    ++seen;
    const Variable variable(variable_of(setting.flag), "");
    const auto by_variable = read_settings(enough_flags);
    if (setting.flag != "--upstream" && setting.flag != "--scope") {  // A flag is stronger.
      ASSERT_FALSE(by_variable.has_value());
      EXPECT_EQ(by_variable.error().front(),
                variable_of(setting.flag) + ": is empty; write a value, or unset the variable");
    }
    if (!config::is_text(kind)) continue;
    const auto by_flag = read_settings({std::string(setting.flag), ""});
    ASSERT_FALSE(by_flag.has_value());
    EXPECT_NE(joined(by_flag.error()).find(std::string(setting.path) + " is empty"),
              std::string::npos)
        << joined(by_flag.error());
  }
  EXPECT_GT(seen, 15U);
}

TEST_F(ConfigPrecedence, no_two_settings_share_a_key_or_a_flag) {
  cli::GatewayFlags flags;
  std::set<std::string_view> names;
  for (const auto& setting : cli::settings_of(flags)) {
    EXPECT_TRUE(names.insert(setting.path).second) << setting.path;
    if (!setting.flag.empty()) {
      EXPECT_TRUE(names.insert(setting.flag).second) << setting.flag;
    }
    EXPECT_FALSE(setting.help.empty()) << setting.path;
  }
}

TEST_F(ConfigPrecedence, a_password_in_a_url_is_not_printed) {
  const auto text = printed({"--store", "postgres://idem:s3cret@db:5432/idem"});
  EXPECT_EQ(text.find("s3cret"), std::string::npos) << text;
  EXPECT_NE(text.find("postgres://idem:***@db:5432/idem"), std::string::npos) << text;
}

TEST_F(ConfigPrecedence, a_changed_password_is_a_change) {
  cli::GatewayFlags before;
  before.store.text = "postgres://idem:one@db/idem";
  cli::GatewayFlags after = before;
  EXPECT_TRUE(cli::changed_for_restart(before, after).empty());
  after.store.text = "postgres://idem:two@db/idem";
  EXPECT_EQ(cli::changed_for_restart(before, after), std::vector<std::string>{"store"});
}

}  // namespace
}  // namespace idem::test
