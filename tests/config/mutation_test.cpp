#include <random>

#include "config/reading.hpp"
#include "support/json.hpp"

/// Files that an editor, a template or a disk has damaged: each is refused with a place or
/// means what its print says.
namespace idem::test {
namespace {

std::string damaged(std::string text, const std::vector<std::string>& others,
                    std::mt19937_64& random) {
  static constexpr std::string_view bytes =
      "{}[]:,-#&*!|>'\"%@`?~ \n\r\t\x04\xFF"
      "01aZ./";
  const auto below = [&](std::size_t end) { return end == 0 ? 0 : random() % end; };
  for (auto times = 1 + below(3); times > 0; --times) {
    const auto at = below(text.size());
    switch (below(5)) {
      case 0:
        text.insert(at, 1, bytes[below(bytes.size())]);
        break;
      case 1:
        if (!text.empty()) text[at] = bytes[below(bytes.size())];
        break;
      case 2:
        text.erase(at, 1 + below(20));
        break;
      case 3:
        text.resize(at);
        break;
      case 4: {
        const auto& other = others[below(others.size())];
        text.insert(at, other.substr(below(other.size()), below(80)));
        break;
      }
    }
  }
  return text;
}

TEST(ConfigMutations, are_refused_with_a_place_or_printed_with_their_meaning) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  std::vector<std::string> texts;
  for (const auto& each : files_of(corpus("right"))) texts.push_back(read_file(each));
  const auto right = texts.size();
  for (const auto& each : files_of(corpus("wrong"))) texts.push_back(read_file(each));
  const auto file = dir.path() / "damaged.yaml";
  std::size_t accepted = 0;
  for (int i = 0; i < 1'500; ++i) {
    const auto text = damaged(texts[random() % (i % 2 == 0 ? right : texts.size())], texts, random);
    write_text(file, text);
    const auto read = read_config(file);
    if (!read) {
      ASSERT_FALSE(read.error().empty()) << text;
      for (const auto& line : read.error()) {
        const bool placed = line.starts_with(file.string() + ":") || line.starts_with("and ");
        ASSERT_TRUE(placed) << line << "\n" << text;
      }
      continue;
    }
    ++accepted;
    const auto printed = cli::print_settings(read->given);
    write_text(file, printed);
    const auto again = read_config(file);
    ASSERT_TRUE(again.has_value()) << joined(again.error()) << text << "\nprinted\n" << printed;
    ASSERT_EQ(cli::print_settings(again->given), printed) << text;
    const auto json = cli::print_settings_as_json(read->given);
    ASSERT_TRUE(parse_json(json)) << json;
    write_text(file, json);
    const auto from_json = read_config(file);
    ASSERT_TRUE(from_json.has_value()) << joined(from_json.error()) << text << "\nas JSON\n"
                                       << json;
    ASSERT_EQ(cli::print_settings(from_json->given), printed) << json;
  }
  EXPECT_GT(accepted, 30U) << "the damage is too large to mean anything";
}

}  // namespace
}  // namespace idem::test
