#include "admin/jobs_api.hpp"

#include "unit/admin/admin_over_store.hpp"

#include <idem/job_limits.hpp>

/// Jobs over a store whose lines, markers and clock the test makes.
namespace idem::admin {
namespace {

class JobsOverStore : public AdminOverStore {
 protected:
  JobDefinition definition(std::size_t count) const {
    JobDefinition job{.id = id_, .by = {"ada", "operator", "token", ""}};
    job.order.as = Resolve::As::failed_retryable;
    job.order.evidence = "nothing there";
    job.order.reason = "ticket 4711";
    job.order.rate = 100;
    job.count = count;
    job.observed_at = now();
    return job;
  }
  /// The job as a process sees it that has read its lines.
  std::shared_ptr<JobFold> fold_of(const JobDefinition& definition,
                                   const std::vector<JobTarget>& targets) {
    auto fold = std::make_shared<JobFold>();
    std::uint64_t seq = 0;
    for (auto& line : {write_line(definition), write_line(targets), write_line(JobBegin{})}) {
      fold->see({.seq = ++seq, .at = now(), .bytes = line});
    }
    EXPECT_EQ(fold->trouble(), "");
    EXPECT_TRUE(fold->has_begun());
    return fold;
  }
  JobDecisions decisions(Millis grace) {
    return JobDecisions({.loop = loop_,
                         .store = *store_,
                         .offload = offload_,
                         .shard = shard_,
                         .grace = grace,
                         .log = log_});
  }
  JobResult decide(const JobDefinition& definition, JobTarget target, Millis grace) {
    auto deciding = decisions(grace);
    const auto fold = fold_of(definition, {target});
    const auto result = run([&] { return deciding.decide(fold, target); });
    EXPECT_TRUE(result);
    return result.value_or(JobResult{});
  }
  std::uint64_t reconciled(metrics::Reconciled as) const {
    return shard_.reconciled[static_cast<std::size_t>(as)].value();
  }

  const std::string journal_ = std::string(job_journals) + id_;
  const std::string marker_ = std::string(open_job_journals) + id_;
};

TEST_F(JobsOverStore, S19_the_longer_of_both_graces_holds_for_negative_evidence) {
  const JobTarget target = unknown(1);
  pass(Millis(30'000));
  JobDefinition job = definition(1);
  job.grace = Millis(60'000);
  EXPECT_EQ(decide(job, target, Millis(0)).verdict, "too_early");
  job.grace = Millis(0);
  EXPECT_EQ(decide(job, target, Millis(60'000)).verdict, "too_early");
  EXPECT_EQ(decide(job, target, Millis(0)).verdict, "done");
}

TEST_F(JobsOverStore, S19_a_decision_counts_as_a_single_one_does) {
  const JobTarget target = unknown(1);
  JobDefinition job = definition(1);
  EXPECT_EQ(decide(job, target, Millis(60'000)).verdict, "too_early");
  EXPECT_EQ(reconciled(metrics::Reconciled::failed), 1U);
  // Evidence that names no attempt contests the record, and the answer then speaks against it.
  Resolve contest;
  contest.id = target.id;
  contest.source = "bank";
  contest.evidence = "charged";
  contest.reason = "an event";
  ask(contest);
  job.order.as = Resolve::As::completed;
  job.order.response = StoredResponse{500, {}, {}};
  fault_ = [refused = false](const StoreCall& call) mutable -> std::optional<Fault> {
    const bool is_first = std::holds_alternative<Resolve>(call) && !std::exchange(refused, true);
    return is_first ? Fault::refuse : Fault::none;
  };
  auto deciding = decisions(Millis(0));
  const auto fold = fold_of(job, {target});
  EXPECT_FALSE(run([&] { return deciding.decide(fold, target); }));
  EXPECT_EQ(shard_.store_errors.value(), 1U);
  EXPECT_EQ(decide(job, target, Millis(0)).verdict, "done");
  EXPECT_EQ(reconciled(metrics::Reconciled::resolved), 1U);
  EXPECT_EQ(shard_.contradictions.value(), 1U);
  EXPECT_EQ(std::ranges::count(events_, "answer_contradicts_event"), 1);
}

TEST_F(JobsOverStore, S19_a_job_with_a_line_that_nobody_can_read_is_not_dropped) {
  JobJournals journals(loop_, *store_);
  JobDecisions deciding = decisions(Millis(0));
  JobRunner runner({.loop = loop_,
                    .store = *store_,
                    .journals = journals,
                    .decisions = deciding,
                    .audit = audit_,
                    .draining = draining_,
                    .log = log_});
  append(marker_, 0, "open");
  append(journal_, 0, write_line(definition(1)));
  append(journal_, 1, "of a later version");
  append(journal_, 2, write_line(JobBegin{}));
  pass(2 * limits::job_begin_max);
  post([&] { runner.look_at(id_); });
  EXPECT_EQ(last_of(journal_), 3U);
  EXPECT_EQ(std::ranges::count(events_, "job_damaged"), 1);
  EXPECT_FALSE(run([&] { return journals.drop(id_); }).value());
  EXPECT_EQ(last_of(journal_), 3U);
}

TEST_F(JobsOverStore, a_running_job_is_kept_however_many_others_are_looked_at) {
  JobJournals journals(loop_, *store_);
  append(journal_, 0, write_line(definition(1)));
  const auto held = run([&] { return journals.read(id_); }).value();
  std::weak_ptr<JobFold> idle;
  for (std::size_t i = 0; i <= limits::jobs_kept_max; ++i) {
    const std::string other = std::string(31, 'b') + static_cast<char>('0' + i);
    append(std::string(job_journals) + other, 0, write_line(definition(1)));
    const auto read = run([&] { return journals.read(other); }).value();
    if (i == 0) idle = read;
  }
  EXPECT_EQ(run([&] { return journals.read(id_); }).value(), held);
  EXPECT_TRUE(idle.expired());
}

TEST_F(JobsOverStore, a_job_is_found_by_a_look_that_its_own_lines_have_overtaken) {
  JobJournals journals(loop_, *store_);
  append(journal_, 0, write_line(definition(1)));
  append(journal_, 1, write_line(std::vector<JobTarget>{unknown(1)}));
  append(journal_, 2, write_line(JobBegin{}));
  const auto job = run([&] { return journals.read(id_); }).value();
  fault_ = [is_late = false](const StoreCall& call) mutable -> std::optional<Fault> {
    const bool is_first = std::holds_alternative<ReadLines>(call) && !std::exchange(is_late, true);
    return is_first ? Fault::delay_reply : Fault::none;
  };
  std::shared_ptr<JobFold> found;
  const auto look = [&]() -> Task<void> {
    auto reading = journals.read(id_);
    found = (co_await reading).value();
  };
  // As many as may overtake a reply.
  const auto write = [&]() -> Task<bool> {
    bool are_written = true;
    for (unsigned i = 0; i <= FaultPlan{}.delay_calls_max; ++i) {
      auto appending = journals.append(job, id_, write_line(JobClaim{"this process"}));
      const auto appended = co_await appending;
      are_written = are_written && appended.value();
    }
    co_return are_written;
  };
  loop_.post([&] { loop_.spawn(look()); });
  EXPECT_TRUE(run(write));
  EXPECT_EQ(found, job);
  EXPECT_EQ(run([&] { return journals.read(id_); }).value(), job) << "it is kept";
}

// ---- a job that has its approvals ----

class ApprovedJob : public JobsOverStore {
 protected:
  WireAnswer decide() {
    const ApprovalRequest request{.id = id_, .kind = ApprovalKind::jobs};
    const OrderBody order =
        approved(R"({"what":"keys.resolve","match":{"state":"unknown"},"expected":1,"order":)"
                 R"({"as":"failed_retryable","evidence":"e","reason":"r"}})",
                 "keys.resolve of 1 records");
    return run([&] { return jobs_.decide(request, order); });
  }
  JobsApi jobs_{parts_, shard_, offload_, approvals_};
};

TEST_F(ApprovedJob, V29_that_another_process_may_be_writing_is_not_refused) {
  unknown(1);
  append(marker_, 0, "open");
  append(journal_, 0, write_line(definition(1)));
  EXPECT_EQ(decide().status, 503) << "half written";
  ask(DropJournal{marker_, 1});
  EXPECT_EQ(decide().status, 409) << "its writer has given up";
}

TEST_F(ApprovedJob, V29_is_begun_by_one_process_alone) {
  unknown(1);
  append(marker_, 0, "open");
  EXPECT_EQ(decide().status, 503);
  JobJournals journals(loop_, *store_);
  const std::vector<JobTarget> targets{{RecordId{}, 1}};
  const auto begun = run([&] { return journals.begin(definition(1), targets); });
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, StoreError::Code::unavailable);
  EXPECT_EQ(last_of(journal_), 0U);
}

TEST_F(ApprovedJob, V29_waits_while_as_many_as_may_be_are_open) {
  unknown(1);
  for (std::size_t i = 0; i < limits::jobs_open_max; ++i) {
    append(std::string(open_job_journals) + std::string(31, 'b') + static_cast<char>('0' + i), 0,
           "open");
  }
  const auto answer = decide();
  EXPECT_EQ(answer.status, 503);
  ASSERT_TRUE(answer.problem);
  EXPECT_NE(answer.problem->detail.find("8 jobs are open"), std::string::npos);
}

TEST_F(ApprovedJob, V29_with_a_damaged_line_is_neither_begun_nor_refused) {
  append(marker_, 0, "open");
  append(journal_, 0, write_line(definition(1)));
  append(journal_, 1, "of a later version");
  EXPECT_GE(decide().status, 500);
}

}  // namespace
}  // namespace idem::admin
