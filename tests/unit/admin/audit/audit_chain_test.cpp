#include "admin/audit/audit_chain.hpp"

#include <gtest/gtest.h>

#include <idem/limits.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

/// The chain of the audit: what was changed in it is found.
namespace idem::admin {
namespace {

Secret secret_of(std::uint8_t fill) {
  Secret secret{};
  secret.fill(fill);
  return secret;
}
const Secret own = secret_of(1);
const Secret newer = secret_of(2);
const Secret store = secret_of(9);

AuditEntry entry(std::uint64_t number) {
  AuditEntry made{.who = "ada",
                  .role = "operator",
                  .login = "token",
                  .peer = "127.0.0.1",
                  .what = number % 2 == 0 ? "keys.resolve" : "dlq.discard",
                  .ref = "0123456789abcdef0123456789abcdef",
                  .reason = "ticket " + std::to_string(number),
                  .before = "unknown fence=7"};
  if (number % 3 == 0) made.of = number - 1;
  return made;
}

/// Lines 1 to `count` of a store.
std::vector<std::string> chain_of(std::size_t count, const Secret& of_store = store,
                                  const Secret& secret = own) {
  std::vector<std::string> lines;
  std::string link = first_link(of_store);
  for (std::uint64_t seq = 1; seq <= count; ++seq) {
    lines.push_back(write_audit_line(seq, StoreTime(Millis(1'800'000'000'000 + 1'000 * seq)),
                                     entry(seq), link, secret));
    link = link_of(lines.back());
  }
  return lines;
}

AuditChain::Verdict verdict_on(const std::vector<std::string>& lines,
                               const std::vector<Secret>& secrets = {own},
                               std::optional<ExpectedLine> expected = {}) {
  AuditChain chain(first_link(store), secrets);
  if (expected) chain.expect(*expected);
  std::uint64_t seq = 0;
  for (const std::string& line : lines) chain.see(++seq, line);
  return chain.verdict();
}

ExpectedLine line_of(const std::vector<std::string>& lines, std::size_t seq) {
  return {seq, parse_audit_line(lines[seq - 1])->hash};
}

TEST(AuditChain, S19_a_chain_as_it_was_written_is_whole) {
  const auto lines = chain_of(50);
  const auto verdict = verdict_on(lines, {own}, line_of(lines, 50));
  EXPECT_EQ(verdict.first_bad, std::nullopt) << verdict.why;
  EXPECT_EQ(verdict.lines, 50U);
  EXPECT_EQ(verdict.last, 50U);
  EXPECT_EQ(verdict.hash, line_of(lines, 50).hash);
  EXPECT_EQ(verdict_on({}).first_bad, std::nullopt);
}

TEST(AuditChain, S19_a_line_has_all_that_was_said) {
  AuditEntry said = entry(3);
  said.reason = "a \"quoted\" reason\nwith a line end and \xc3\xa4";
  said.settings = {{"listen", "0123456789abcdef"}, {"routes.a\"b", "fedcba9876543210"}};
  const std::string line = write_audit_line(3, StoreTime(Millis(0)), said, "prev", own);
  const auto parsed = parse_audit_line(line);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->entry, said);
  EXPECT_EQ(parsed->seq, 3U);
  EXPECT_EQ(parsed->at, "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(parsed->prev, "prev");
  EXPECT_EQ(parsed->secret, secret_id(own));
  EXPECT_TRUE(is_made_by(line, own));
  EXPECT_FALSE(is_made_by(line, newer));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  AuditEntry twice = said;
  twice.settings.push_back(twice.settings.front());
  const auto once = parse_audit_line(write_audit_line(3, StoreTime(Millis(0)), twice, "prev", own));
  ASSERT_TRUE(once) << "a reader refuses a name that occurs twice";
  EXPECT_EQ(once->entry, said);
}

TEST(AuditChain, S19_the_longest_line_fits_its_journal) {
  AuditEntry said = entry(3);
  for (auto* const text : {&said.who, &said.ref, &said.reason, &said.before, &said.after}) {
    text->assign(limits::journal_line_bytes_max, '\x01');
  }
  for (int n = 0; n < 5'000; ++n) said.settings.emplace_back("route" + std::to_string(n), "d");
  const std::string line = write_audit_line(3, StoreTime(Millis(0)), said, "prev", own);
  EXPECT_LE(line.size(), limits::journal_line_bytes_max);
  ASSERT_TRUE(parse_audit_line(line));
  EXPECT_TRUE(is_made_by(line, own));
}

TEST(AuditChain, S19_a_removed_end_is_found_by_an_expected_line) {
  const auto lines = chain_of(10);
  const std::vector<std::string> shorter(lines.begin(), lines.end() - 2);
  EXPECT_EQ(verdict_on(shorter).first_bad, std::nullopt) << "nothing else can tell";
  EXPECT_EQ(verdict_on(shorter, {own}, line_of(lines, 10)).first_bad, 9U);
  EXPECT_EQ(verdict_on({}, {own}, line_of(lines, 10)).first_bad, 1U);
  auto other = line_of(lines, 5);
  other.hash[0] = other.hash[0] == '0' ? '1' : '0';
  EXPECT_EQ(verdict_on(lines, {own}, other).first_bad, 5U);
}

TEST(AuditChain, S19_lines_of_a_rotated_secret_stay_good) {
  auto lines = chain_of(3);
  lines.push_back(
      write_audit_line(4, StoreTime(Millis(0)), entry(4), link_of(lines.back()), newer));
  EXPECT_EQ(verdict_on(lines, {newer, own}).first_bad, std::nullopt);
  // The line of the secret that is here follows from those of the one that is gone.
  EXPECT_EQ(verdict_on(lines, {newer}).first_bad, std::nullopt);
  auto changed = lines;
  changed[1] = write_audit_line(2, StoreTime(Millis(0)), entry(7), link_of(lines[0]), own);
  EXPECT_EQ(verdict_on(changed, {newer}).first_bad, 1U) << "no good line follows from it any more";
  EXPECT_EQ(verdict_on(lines, {newer, own}).proven_from, 1U);
  EXPECT_EQ(verdict_on(lines, {newer}).proven_from, 4U);
  // Nothing proves lines of an unknown secret at the end.
  EXPECT_EQ(verdict_on(lines, {own}).first_bad, 4U);
  EXPECT_NE(verdict_on(lines, {own}).why.find(secret_id(newer)), std::string::npos);
}

/// Lines from `at` on, written anew by an attacker without a secret, and a genuine one behind them.
void forge_end(std::vector<std::string>& lines, std::size_t at) {
  for (std::size_t i = at; i < lines.size(); ++i) {
    lines[i] = write_audit_line(i + 1, StoreTime(Millis(0)), entry(i + 50), link_of(lines[i - 1]),
                                secret_of(77));
  }
  lines.push_back(write_audit_line(lines.size() + 1, StoreTime(Millis(0)), entry(99),
                                   link_of(lines.back()), own));
}

TEST(AuditChain, S19_an_end_that_was_forged_without_a_secret_is_found_behind_a_genuine_line_too) {
  for (std::size_t at = 1; at < 10; ++at) {
    auto lines = chain_of(10);
    forge_end(lines, at);
    const auto verdict = verdict_on(lines);
    EXPECT_EQ(verdict.first_bad, at + 1);
    EXPECT_NE(verdict.why.find("nothing proves it"), std::string::npos) << verdict.why;
  }
  auto lines = chain_of(3);
  lines.push_back(
      write_audit_line(4, StoreTime(Millis(0)), entry(4), link_of(lines.back()), secret_of(77)));
  EXPECT_EQ(verdict_on(lines).first_bad, 4U) << "one that was only appended";
}

TEST(AuditChain, S19_a_line_that_the_store_holds_damaged_is_bad) {
  const auto lines = chain_of(3);
  AuditChain chain(first_link(store), {own});
  for (std::uint64_t seq = 1; seq <= 3; ++seq) chain.see(seq, lines[seq - 1], seq == 2);
  EXPECT_EQ(chain.verdict().first_bad, 2U);
}

TEST(AuditChain, S19_the_chain_of_another_store_is_none_of_this_one) {
  EXPECT_EQ(verdict_on(chain_of(5, secret_of(8))).first_bad, 1U);
}

/// One manipulation of lines: false if it would leave them as they are, or takes lines from the end
/// only, which nothing but an expected line can show.
bool manipulate(std::vector<std::string>& lines, std::mt19937_64& random) {
  static const auto foreign = chain_of(40, secret_of(8));
  static const auto forged = chain_of(40, store, secret_of(5));
  const auto before = lines;
  const auto any = [&] { return random() % lines.size(); };
  const std::size_t at = any();
  switch (random() % 9) {
    case 0:
      lines[at][random() % lines[at].size()] ^= static_cast<char>(1 << (random() % 8));
      break;
    case 1:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      std::swap(lines[at], lines[any()]);
      break;
    case 3:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[any()]);
      break;
    case 4:
      lines[at] = foreign[random() % foreign.size()];
      break;
    case 5:
      lines[at] = forged[at % forged.size()];
      break;
    case 6:
      lines[at].resize(random() % lines[at].size());
      break;
    case 7:
      forge_end(lines, std::max<std::size_t>(at, 1));
      break;
    default:
      std::reverse(lines.begin() + static_cast<std::ptrdiff_t>(at), lines.end());
      break;
  }
  const bool is_only_shorter =
      lines.size() < before.size() && std::equal(lines.begin(), lines.end(), before.begin());
  return lines != before && !is_only_shorter;
}

TEST(AuditChain, S19_a_thousand_manipulations_are_all_found) {
  const char* const given = std::getenv("IDEM_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("IDEM_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const auto whole = chain_of(40);
  int found = 0;
  while (found < 1'000) {
    auto lines = whole;
    if (!manipulate(lines, random)) continue;
    const auto verdict = verdict_on(lines);
    ASSERT_TRUE(verdict.first_bad) << found << ", IDEM_SEED=" << seed;
    const auto differs = std::ranges::mismatch(lines, whole).in1 - lines.begin();
    EXPECT_EQ(*verdict.first_bad, static_cast<std::uint64_t>(differs) + 1) << verdict.why;
    ++found;
  }
}

TEST(AuditChain, S19_a_gap_in_the_numbers_is_found) {
  const auto lines = chain_of(5);
  for (const std::uint64_t missing : {1U, 3U}) {
    AuditChain chain(first_link(store), {own});
    for (std::uint64_t seq = 1; seq <= 5; ++seq) {
      if (seq != missing) chain.see(seq, lines[seq - 1]);
    }
    EXPECT_EQ(chain.verdict().first_bad, missing);
  }
}

TEST(AuditChain, expected_lines_are_read_strictly) {
  const std::string hash(64, 'a');
  ASSERT_TRUE(parse_expected_line("12:" + hash));
  EXPECT_EQ(parse_expected_line("12:" + hash)->seq, 12U);
  for (const std::string& wrong :
       {std::string(), std::string("12"), "0:" + hash, "12:" + hash + "a",
        "12:" + std::string(64, 'G'), ":" + hash, "x:" + hash, "12 :" + hash}) {
    EXPECT_FALSE(parse_expected_line(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace idem::admin
