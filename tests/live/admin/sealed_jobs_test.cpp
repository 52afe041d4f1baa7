#include <fmt/format.h>

#include "support/admin.hpp"
#include "support/encrypted.hpp"
#include "support/jobs.hpp"
#include "support/moved_clock.hpp"

/// Jobs in a store that is encrypted.
namespace idem::test {
namespace {

class SealedJobs : public Operated {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    Operated::SetUp();
    start(true);
    clock_.move_also_under(dir_.path() / "idem.db");
  }
  /// Ends the gateway as a crash does, and starts another on the same store.
  void start(bool has_secret) {
    if (gateway_) gateway_->kill();
    gateway_.reset();
    GatewayOptions own = options(provider_->address());
    own.program = "idem-crash";
    own.environment = {clock_.environment()};
    if (has_secret) own.flags = {"--encryption-secret-file", secret_file(dir_.path(), "newest")};
    gateway_ = std::make_unique<Gateway>(std::move(own));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  MovedClock clock_;
};

TEST_F(SealedJobs, S14_V29_a_process_without_the_key_leaves_a_job_to_one_that_has_it) {
  constexpr int count = 8;
  make_unknown(gateway_->address(), "k", count);
  const auto begun = post("/v1/jobs", completing_all(count, 1));
  ASSERT_EQ(begun.status, 202) << begun.raw;
  const std::string id = parse_json(begun.body).value_or(Json{})["job"].string;
  start(false);
  ASSERT_TRUE(gateway_->process().wait_for_line("job_damaged"));
  EXPECT_TRUE(gateway_->process().wait_for_line("there are no encryption.secret_files"));
  const auto shown = get("/v1/jobs/" + id);
  EXPECT_TRUE(is_problem(shown, 409, "state_refused")) << shown.raw;
  EXPECT_TRUE(
      is_problem(post("/v1/jobs/" + id + "/cancel", R"({"reason":"r"})"), 409, "state_refused"));
  // A job that was not begun by now is dropped; this one was.
  clock_.pass(301);
  start(false);
  ASSERT_TRUE(gateway_->process().wait_for_line("job_damaged"));
  start(true);
  const Json job = wait_for_job([&] { return gateway_->admin(); }, id, is_over);
  EXPECT_EQ(job["state"].string, "ended") << job["trouble"].string;
  EXPECT_EQ(job["done"].integer, count);
  for (int number = 0; number < count; ++number) {
    EXPECT_EQ(effects(fmt::format("k-{}", number)), 1);
  }
  EXPECT_EQ(ask(charge("k-7")).body, "found");
}

}  // namespace
}  // namespace idem::test
