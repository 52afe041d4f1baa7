#include "cli/doctor/file_checks.hpp"
#include "cli/doctor/machine_checks.hpp"

#include <gtest/gtest.h>

#include <limits>

/// How `idem doctor` judges what a test cannot provoke on a machine that others use, too.
namespace idem::cli::doctor {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""min;
using Result = Finding::Result;

void expect(const Finding& finding, Result result, std::string_view what, std::string_view todo) {
  EXPECT_EQ(static_cast<int>(finding.result), static_cast<int>(result)) << finding.what;
  EXPECT_NE(finding.what.find(what), std::string::npos) << finding.what;
  EXPECT_NE(finding.todo.find(todo), std::string::npos) << finding.todo;
}

TEST(Doctor, a_clock_is_compared_with_the_store_and_with_ntp) {
  expect(judge_clock(true, {}), Result::ok, "synchronised", "");
  expect(judge_clock(true, 1'999ms), Result::ok, "1999 ms from the store's server", "");
  expect(judge_clock(true, 2'000ms), Result::warning, "2000 ms ahead of", "NTP");
  expect(judge_clock(true, -59'999ms), Result::warning, "59999 ms behind", "NTP");
  expect(judge_clock(false, 1min), Result::problem, "60000 ms ahead of", "NTP");
  expect(judge_clock(false, {}), Result::warning, "does not regard the clock", "run an NTP client");
}

TEST(Doctor, a_disk_is_judged_by_room_and_kind) {
  constexpr std::uint64_t gib = 1024UL * 1024 * 1024;
  const DiskFacts fine{.free_bytes = 2 * gib, .free_files = 100'000, .kind = 0xEF53};
  const auto with = [&](auto change) {
    DiskFacts facts = fine;
    change(facts);
    return facts;
  };
  const auto found = judge_disk("disk", fine, true);
  ASSERT_EQ(found.size(), 2U);
  expect(found[0], Result::ok, "2048 MiB are free", "");
  expect(found[1], Result::ok, "local", "");
  expect(judge_disk("disk", with([](auto& f) { f.free_bytes = 127UL << 20; }), true)[0],
         Result::problem, "127 MiB are free: a store that cannot write ends", "free room");
  expect(judge_disk("disk", with([](auto& f) { f.free_bytes = 129UL << 20; }), false)[0],
         Result::warning, "uploads are refused", "free room");
  const auto few = judge_disk("disk", with([](auto& f) { f.free_files = 9; }), false);
  ASSERT_EQ(few.size(), 2U);
  expect(few[1], Result::warning, "9 more files", "inodes");
  for (const std::uint64_t kind : {0x6969UL, 0xFF534D42UL, 0xFE534D42UL}) {
    expect(judge_disk("disk", with([&](auto& f) { f.kind = kind; }), true)[1], Result::problem,
           "network file system", "put the store on a local disk");
  }
  expect(judge_disk("disk", with([](auto& f) { f.kind = 0x65735546; }), true)[1], Result::warning,
         "FUSE", "local disk");
  EXPECT_EQ(judge_disk("disk", with([](auto& f) { f.kind = 0x6969; }), false).size(), 1U)
      << "uploads need no locks";
}

TEST(Doctor, limits_are_compared_with_the_connections) {
  GatewayOptions options;
  options.connections = 1'000;
  constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();
  expect(judge_limits({3'128, unlimited}, options)[0], Result::ok, "3128 are needed", "");
  expect(judge_limits({3'127, unlimited}, options)[0], Result::warning, "1000 clients",
         "LimitNOFILE=3128");
  const auto small = judge_limits({9'999, 1'000}, options);
  ASSERT_EQ(small.size(), 2U);
  expect(small[1], Result::problem, "files of 1000 bytes", "LimitFSIZE");
  options.core_dumps = true;
  expect(judge_limits({9'999, unlimited}, options)[1], Result::warning, "in clear", "core_dumps");
}

TEST(Doctor, a_certificate_is_judged_by_its_dates) {
  const Moment now{std::chrono::sys_days(std::chrono::year(2026) / 11 / 26)};
  const auto from = [&](int first_day, int last_day) {
    const auto at = now.time_since_epoch().count();
    return http::Certificate{.subject = "/CN=api",
                             .names = {"api.example", "192.0.2.1"},
                             .not_before = at + first_day * 86'400L,
                             .not_after = at + last_day * 86'400L};
  };
  expect(judge_certificate("c", from(-1, 30), now, "renew"), Result::ok,
         "until 2026-12-26 for api.example, 192.0.2.1", "");
  expect(judge_certificate("c", from(-1, 29), now, "renew"), Result::warning,
         "ends on 2026-12-25, in 29 days", "renew");
  expect(judge_certificate("c", from(-9, -1), now, "renew"), Result::problem, "ended on 2026-11-25",
         "renew");
  expect(judge_certificate("c", from(1, 9), now, "renew"), Result::problem, "valid from 2026-11-27",
         "clock");
}

}  // namespace
}  // namespace idem::cli::doctor
