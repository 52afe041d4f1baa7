#include "compare/comparison.hpp"

#include <gtest/gtest.h>
#include <idem/limits.hpp>

#include <chrono>

namespace idem::test {
namespace {

using namespace std::chrono_literals;
using compare::Comparison;
using compare::Finding;
using compare::Kind;
using compare::Name;
using compare::Ours;
using compare::Result;
using compare::Rules;
using compare::Theirs;

constexpr StoreTime noon{Millis{1'800'000'000'000}};

/// A day around noon, with five minutes at its edges.
Rules a_day() {
  return {.from = noon - 12h, .to = noon + 12h, .slack = 5min, .amount = true, .currency = true};
}

Ours charged(std::uint8_t number, std::string amount = "1250") {
  Ours ours{
      .status = 201, .has_body = true, .created_at = noon, .money = {std::move(amount), "EUR"}};
  ours.ref.bytes[0] = number;
  return ours;
}
Ours in_state(std::uint8_t number, State state) {
  Ours ours{.state = state, .created_at = noon};
  ours.ref.bytes[0] = number;
  return ours;
}

/// Records and lines that are matched by number; line 0 names nothing.
class Books {
 public:
  explicit Books(Rules rules = a_day()) : comparison_(rules) {}

  Books& ours(const Ours& one) {
    const Name name = one.ref.bytes;
    EXPECT_TRUE(comparison_.add(one, std::span(&name, 1)));
    return *this;
  }
  Books& theirs(std::uint8_t number, std::string amount = "1250", bool happened = true,
                std::optional<StoreTime> at = noon) {
    Name name{};
    name[0] = number;
    const Theirs line{.line = ++lines_,
                      .id = "ch_" + std::to_string(lines_),
                      .happened = happened,
                      .at = at,
                      .money = {std::move(amount), "EUR"}};
    (void)comparison_.add(line, std::span(&name, number == 0 ? 0 : 1));
    return *this;
  }
  Comparison& comparison() { return comparison_; }
  Result result() { return std::move(comparison_).result(); }

  /// The only thing that is counted, and the finding if one is reported.
  Finding only(Kind kind) {
    Result all = result();
    std::uint64_t sum = 0;
    for (const auto count : all.counts) sum += count;
    EXPECT_EQ(sum, 1U);
    EXPECT_EQ(all.count(kind), 1U) << name_of(kind);
    return all.findings.empty() ? Finding{} : all.findings.front();
  }

 private:
  Comparison comparison_;
  std::uint64_t lines_ = 0;
};

TEST(Comparison, a_line_of_both_sides_agrees_and_is_not_reported) {
  Result result = Books().ours(charged(1)).theirs(1).result();
  EXPECT_EQ(result.count(Kind::agree), 1U);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.differences(), 0U);
  EXPECT_EQ(result.by_existence, 0U);
}

TEST(Comparison, V37_finds_lines_missing_on_either_side) {
  EXPECT_EQ(Books().ours(charged(1)).only(Kind::ours_only).ours->ref.bytes[0], 1);
  const Finding theirs = Books().theirs(2).only(Kind::theirs_only);
  EXPECT_FALSE(theirs.ours);
  EXPECT_EQ(theirs.theirs.at(0).id, "ch_1");
  Books().theirs(0).only(Kind::theirs_only);
  EXPECT_EQ(Books().theirs(0).theirs(0).result().count(Kind::theirs_only), 2U)
      << "lines that name nothing are not one another's duplicates";
}

TEST(Comparison, amounts_and_currencies_are_compared) {
  const Finding finding = Books().ours(charged(1)).theirs(1, "1251").only(Kind::amount_differs);
  EXPECT_EQ(finding.why, "ours is 1250 EUR, theirs 1251 EUR");
  Ours dollars = charged(1);
  dollars.money.currency = "USD";
  Books().ours(dollars).theirs(1).only(Kind::amount_differs);
  Ours without = charged(1);
  without.money.amount.clear();
  Books().ours(without).theirs(1).only(Kind::amount_differs);
  Rules existence = a_day();
  existence.amount = existence.currency = false;
  Books(existence).ours(charged(1)).theirs(1, "1251").only(Kind::agree);
}

TEST(Comparison, two_lines_for_one_key_are_a_duplicate_whatever_the_record_holds) {
  Finding finding = Books().ours(charged(1)).theirs(1).theirs(1).only(Kind::duplicate);
  ASSERT_EQ(finding.theirs.size(), 2U);
  EXPECT_EQ(finding.theirs[0].id, "ch_1");
  EXPECT_EQ(finding.theirs[1].id, "ch_2");
  EXPECT_EQ(finding.why, "it happened 2 times");
  for (const State state : {State::unknown, State::in_progress, State::expired,
                            State::failed_retryable, State::pending}) {
    Books().ours(in_state(1, state)).theirs(1).theirs(1).only(Kind::duplicate);
  }
  finding = Books().theirs(1).theirs(2, "1").theirs(1).result().findings.at(0);
  EXPECT_EQ(finding.kind, Kind::duplicate);
  EXPECT_FALSE(finding.ours);
  EXPECT_EQ(finding.theirs.size(), 2U);
  Books().ours(charged(1)).theirs(1, "1", false).theirs(1).only(Kind::agree);
}

TEST(Comparison, a_status_of_the_opposite_meaning_is_a_difference) {
  Ours declined = charged(1);
  declined.status = 402;
  Books().ours(declined).theirs(1).only(Kind::status_differs);
  Books().ours(charged(1)).theirs(1, "", false).only(Kind::status_differs);
  Books().ours(in_state(1, State::failed_retryable)).theirs(1).only(Kind::status_differs);
  Books().ours(declined).theirs(1, "", false).only(Kind::agree);
  Books().ours(declined).only(Kind::agree);
  Books().ours(in_state(1, State::failed_retryable)).only(Kind::agree);
  EXPECT_EQ(Books().theirs(1, "", false).result().counts, Result{}.counts)
      << "a refusal of something unknown is nothing";
}

TEST(Comparison, a_record_of_open_outcome_is_reported_and_is_no_difference) {
  for (const State state : {State::unknown, State::in_progress, State::pending}) {
    const Finding absent = Books().ours(in_state(1, state)).only(Kind::undecided);
    EXPECT_TRUE(absent.theirs.empty());
    const Finding refused =
        Books().ours(in_state(1, state)).theirs(1, "", false).only(Kind::undecided);
    EXPECT_FALSE(refused.theirs.at(0).happened);
    EXPECT_FALSE(is_difference(refused.kind));
  }
  for (const State state : {State::unknown, State::in_progress}) {
    const Finding there = Books().ours(in_state(1, state)).theirs(1).only(Kind::undecided);
    EXPECT_EQ(there.theirs.at(0).line, 1U);
    EXPECT_EQ(there.why, "the provider has it");
  }
}

// It was undecided, no difference and never settled, and the dispatcher ran it a second time.
TEST(Comparison, an_unnamed_status_means_neither_executed_nor_not_executed) {
  const auto line_of = [](std::uint8_t number) {
    return Theirs{.line = number, .happened = false, .unclear = "pending", .at = noon};
  };
  struct Case {
    Ours ours;
    Kind kind;
  };
  const Case cases[] = {{charged(1), Kind::status_differs},
                        {in_state(2, State::failed_retryable), Kind::undecided},
                        {in_state(3, State::unknown), Kind::undecided},
                        {in_state(4, State::expired), Kind::undecided}};
  for (const auto& [ours, kind] : cases) {
    Books books;
    books.ours(ours);
    const Name name = ours.ref.bytes;
    (void)books.comparison().add(line_of(1), std::span(&name, 1));
    const Finding finding = books.only(kind);
    EXPECT_EQ(finding.why.find("the provider refused"), std::string::npos) << finding.why;
    EXPECT_NE(finding.why.find("no option names the line's status"), std::string::npos)
        << finding.why;
    ASSERT_EQ(finding.theirs.size(), 1U);
    EXPECT_EQ(finding.theirs[0].unclear, "pending");
  }
}

TEST(Comparison, an_unnamed_status_without_a_record_is_undecided_and_shown) {
  Books books;
  const Theirs line{.line = 3, .id = "ch_3", .happened = false, .unclear = "pending", .at = noon};
  (void)books.comparison().add(line, {});
  const Finding finding = books.only(Kind::undecided);
  EXPECT_FALSE(finding.ours);
  ASSERT_EQ(finding.theirs.size(), 1U);
  EXPECT_EQ(finding.theirs[0].line, 3U);
  EXPECT_EQ(finding.theirs[0].id, "ch_3");
  EXPECT_EQ(finding.why, "no option names the line's status, and there is no record");
}

TEST(Comparison, an_unnamed_status_hides_no_executed_line_of_that_name) {
  Books books;
  const Theirs pending{
      .line = 1, .id = "ch_1", .happened = false, .unclear = "pending", .at = noon - 12h + 1min};
  const Theirs charged{.line = 2, .id = "ch_2", .happened = true, .at = noon};
  const Name name{7};
  (void)books.comparison().add(pending, std::span(&name, 1));
  (void)books.comparison().add(charged, std::span(&name, 1));
  const Finding finding = books.only(Kind::theirs_only);
  EXPECT_EQ(finding.theirs.size(), 2U);
  EXPECT_EQ(finding.why, "there is no record");
}

TEST(Comparison, an_executed_line_of_a_record_that_would_run_again_is_a_difference) {
  const Finding finding =
      Books().ours(in_state(1, State::pending)).theirs(1).only(Kind::status_differs);
  EXPECT_EQ(finding.theirs.at(0).line, 1U);
  EXPECT_EQ(finding.why, "it happened, and the record is pending: it will be run again");
}

TEST(Comparison, an_expired_record_agrees_by_existence) {
  const Result result = Books().ours(in_state(1, State::expired)).theirs(1, "7").result();
  EXPECT_EQ(result.count(Kind::agree), 1U);
  EXPECT_EQ(result.by_existence, 1U);
  Books().ours(in_state(1, State::expired)).only(Kind::ours_only);
}

TEST(Comparison, at_the_edges_of_the_period_nothing_is_one_sided) {
  for (const auto at : {noon - 12h, noon - 12h - 5min, noon - 12h + 5min - 1ms, noon + 12h - 5min,
                        noon + 12h, noon + 12h + 4min}) {
    Ours ours = charged(1);
    ours.created_at = at;
    Books().ours(ours).only(Kind::at_edge);
    Books().theirs(1, "1", true, at).only(Kind::at_edge);
    Books().ours(ours).theirs(1, "7").only(Kind::amount_differs);
    Books().theirs(1, "1", true, at).theirs(1, "1", true, at).only(Kind::duplicate);
  }
  for (const auto at : {noon - 12h + 5min, noon + 12h - 5min - 1ms}) {
    Ours ours = charged(1);
    ours.created_at = at;
    Books().ours(ours).only(Kind::ours_only);
    Books().theirs(1, "1", true, at).only(Kind::theirs_only);
  }
  // An export that reaches further is none of this comparison's, but may still be what a record
  // lacks.
  const StoreTime later = noon + 12h + 5min;
  EXPECT_EQ(Books().theirs(1, "1", true, later).result().counts, Result{}.counts);
  Books().ours(charged(1)).theirs(1, "1250", true, later).only(Kind::agree);
  Books().theirs(1, "1", true, std::nullopt).only(Kind::theirs_only);
}

TEST(Comparison, a_record_from_outside_the_period_can_be_added_for_a_line) {
  Books books;
  books.theirs(1).theirs(2, "7").theirs(3, "1", false);
  const auto unmet = books.comparison().unmet(10);
  ASSERT_EQ(unmet.size(), 2U);
  EXPECT_EQ(unmet[0][0], 1);
  EXPECT_EQ(unmet[1][0], 2);
  books.ours(charged(1)).ours(charged(2));
  const Result result = books.result();
  EXPECT_EQ(result.count(Kind::agree), 1U);
  EXPECT_EQ(result.count(Kind::amount_differs), 1U);
  EXPECT_EQ(result.count(Kind::theirs_only), 0U);
}

TEST(Comparison, a_line_may_lie_under_several_names) {
  Comparison comparison(a_day());
  const Name name = charged(2).ref.bytes;
  ASSERT_TRUE(comparison.add(charged(2), std::span(&name, 1)));
  const std::vector<Name> names{charged(9).ref.bytes, name};
  const auto met = comparison.add({.line = 1, .money = {"1250", "EUR"}}, names);
  ASSERT_TRUE(met.ours);
  EXPECT_EQ(met.ours->ref, charged(2).ref);
  EXPECT_EQ(std::move(comparison).result().count(Kind::agree), 1U);
}

TEST(Comparison, counts_the_lines_it_could_explain) {
  Books books;
  books.ours(charged(1)).theirs(1).theirs(2).theirs(3, "", false).theirs(0);
  books.theirs(4, "1", true, noon + 24h).theirs(5);
  books.ours(charged(5));
  const Result result = books.result();
  EXPECT_EQ(result.lines_met, 2U);
  EXPECT_EQ(result.lines_unmet, 4U) << "refused ones and those from outside the period are lines";
}

TEST(Comparison, the_worst_comes_first) {
  Books books;
  books.ours(charged(1)).ours(charged(2)).ours(in_state(3, State::unknown)).ours(charged(4));
  books.theirs(1, "7").theirs(9).theirs(4).theirs(4);
  const Result result = books.result();
  std::vector<Kind> kinds;
  for (const Finding& finding : result.findings) kinds.push_back(finding.kind);
  EXPECT_EQ(kinds, (std::vector{Kind::duplicate, Kind::theirs_only, Kind::ours_only,
                                Kind::amount_differs, Kind::undecided}));
  EXPECT_EQ(result.differences(), 4U);
}

}  // namespace
}  // namespace idem::test
