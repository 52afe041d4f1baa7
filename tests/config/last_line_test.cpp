#include "cli/log/process_log.hpp"
#include "core/bytes/last_words.hpp"

#include <idem/assert.hpp>

#include <gtest/gtest.h>

#include <cassert>
#include <stdexcept>
#include <thread>

/// The last line of a process that aborts has the form of its log.
namespace idem::cli {
namespace {

class LastLine : public testing::Test {
 protected:
  LastLine() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

constexpr const char* as_json =
    R"re(\{"time":"[^"]*","level":"error","event":"process_aborted","reason":")re";

TEST_F(LastLine, R31_of_a_broken_invariant_is_json_where_the_log_is) {
  EXPECT_DEATH(
      {
        const ProcessLog log("json");
        IDEM_ASSERT(log.lost() == 1);
      },
      std::string(as_json) + "broken invariant: log.lost");
  EXPECT_DEATH(
      {
        const ProcessLog log("text");
        IDEM_ASSERT(log.lost() == 1);
      },
      "idem: broken invariant: log.lost");
}

// The assertions of libraries, which the compiler leaves in by their own settings.
TEST_F(LastLine, R31_of_an_assertion_in_a_library_is_json_where_the_log_is) {
  EXPECT_DEATH(
      {
        const ProcessLog log("json");
        __assert_fail("tail != nullptr", "db/version.cc", 17, "void f()");
      },
      std::string(as_json) + "broken invariant: tail != nullptr at db/version.cc:17 in void f");
}

// An index that is damaged where RocksDB reads before it compares a checksum.
TEST_F(LastLine, S22_R31_damage_that_a_library_takes_for_a_fault_ends_with_its_place_and_no_abort) {
  EXPECT_EXIT(
      {
        const ProcessLog log("json");
        const DamageMet damage("/var/lib/idem: is damaged");
        std::thread([] { __assert_fail("size > 0", "table/block.cc", 17, "void f()"); }).join();
      },
      testing::ExitedWithCode(1), std::string(as_json) + "/var/lib/idem: is damaged. It was met");
}

TEST_F(LastLine, R31_of_an_exception_that_nothing_catches_is_json_where_the_log_is) {
  EXPECT_DEATH(
      {
        const ProcessLog log("json");
        std::thread([] { throw std::runtime_error("no \"room\""); }).join();
      },
      std::string(as_json) + R"re(an exception was not caught: no \\"room\\""\})re");
}

TEST_F(LastLine, R31_of_a_store_that_fails_is_json_where_the_log_is) {
  EXPECT_DEATH(
      {
        const ProcessLog log("json");
        say_last_words("idem: log store failed path=/x doing=write: no space");
        std::abort();
      },
      std::string(as_json) + "log store failed path=/x doing=write: no space");
}

}  // namespace
}  // namespace idem::cli
