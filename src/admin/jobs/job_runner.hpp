#pragma once

#include "admin/audit/audit_trail.hpp"
#include "admin/jobs/job_decisions.hpp"

#include <atomic>
#include <set>

namespace idem::admin {

/// Runs the open jobs of a store, also those that other processes have begun and left. Of several
/// processes one runs a job: it appends a claim, each line of results renews it, and an append
/// behind another process's line fails. Loop's thread only.
class JobRunner {
 public:
  struct Parts {
    Loop& loop;
    Store& store;
    JobJournals& journals;
    JobDecisions& decisions;
    AuditTrail& audit;
    const std::atomic<bool>& draining;
    LogSink log;
  };
  /// All parts outlive it.
  explicit JobRunner(Parts parts);
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// Looks for jobs from now on. Before the loop runs, or on its thread.
  void start();
  /// Does not wait for the next look.
  void look_at(const std::string& id);

 private:
  using Job = std::shared_ptr<JobFold>;
  /// What this process has decided and not noted yet.
  struct Owed {
    std::uint64_t from = 0;
    std::vector<JobResult> results;
  };
  enum class Next : std::uint8_t { go_on, wait, leave };

  Task<void> keep_looking();
  Task<void> drop_old();
  Task<void> run(std::string id);
  StoreTask<Next> step(Job job, std::string id, Owed& owed);
  StoreTask<Next> claim(Job job, std::string id);
  StoreTask<Next> decide_some(Job job, std::string id, Owed& owed);
  StoreTask<Next> note(Job job, std::string id, Owed& owed);
  StoreTask<Next> finish(Job job, std::string id, Owed& owed);
  StoreTask<std::vector<JobResult>> made_so_far(Job job);
  StoreTask<Next> abandon(Job job, std::string id);
  Task<void> keep_pace(const std::string& id, unsigned rate);
  bool is_ours(const JobFold& job) const { return job.claimer() == node_; }

  Parts parts_;
  const std::string
      node_;  ///< Another one after each start: a claim of the process before is not ours.
  std::set<std::string> running_;
  std::map<std::string, MonotonicTime> claimed_at_;  ///< Before the last line of ours was sent.
  std::map<std::string, MonotonicTime> due_at_;      ///< When the next decision may be made.
  std::set<std::string> reported_;                   ///< Damaged jobs that the log has named.
  MonotonicTime drop_at_{};
};

}  // namespace idem::admin
