#pragma once

#include "admin/jobs/job_lines.hpp"

#include <idem/journal.hpp>

#include <algorithm>

namespace idem::admin {

/// What a job's lines say together. Sees each line once, in order; one that does not belong there,
/// or is damaged, is trouble: then nobody decides anything more in this job.
class JobFold {
 public:
  /// A job that has ended, of which only the first and the last line were read: without targets and
  /// results.
  static JobFold ended(const JournalLine& first, JobDefinition definition, const JournalLine& last,
                       JobEnd end);

  /// A line that was seen before changes nothing.
  void see(const JournalLine& line);
  /// The store's time as it was read last.
  void set_now(StoreTime now) { now_ = std::max(now_, now); }

  /// The number of the last line; 0: there is no such job.
  std::uint64_t last() const { return last_; }
  const std::string& trouble() const { return trouble_; }
  /// A line is encrypted under a secret that this process lacks: another one may have it, and run
  /// the job.
  bool lacks_a_secret() const { return trouble_.contains("encryption.secret_files"); }
  const std::optional<JobDefinition>& definition() const { return definition_; }
  bool has_begun() const { return has_begun_; }
  StoreTime made_at() const { return made_at_; }

  const std::vector<JobTarget>& targets() const { return targets_; }
  /// Of the first targets, in order.
  const std::vector<JobResult>& results() const { return results_; }
  std::uint64_t done() const { return done_; }
  std::uint64_t refused() const { return refused_; }
  /// Without a decision.
  std::uint64_t left() const { return definition_ ? definition_->count - done_ - refused_ : 0; }

  const std::optional<JobCancel>& cancel() const { return cancel_; }
  const std::optional<JobEnd>& end() const { return end_; }
  StoreTime changed_at() const { return changed_at_; }
  /// The process that runs it; empty: none so far.
  const std::string& claimer() const { return claimer_; }
  /// How long ago that process has written its last line.
  Millis claim_age() const { return now_ - claimed_at_; }
  /// How long ago its last line was written.
  Millis idle_for() const { return now_ - changed_at_; }

  /// "waiting" (no process runs it), "running", "cancelling", "cancelled", "ended" or "damaged".
  std::string_view state() const;

 private:
  std::string take(JobDefinition line, StoreTime at);
  std::string take(JobTargets line, StoreTime at);
  std::string take(const JobBegin& line, StoreTime at);
  std::string take(JobClaim line, StoreTime at);
  std::string take(const JobResults& line, StoreTime at);
  std::string take(JobCancel line, StoreTime at);
  std::string take(JobEnd line, StoreTime at);
  bool is_open() const { return has_begun_ && !end_; }

  std::uint64_t last_ = 0;
  std::string trouble_;
  std::optional<JobDefinition> definition_;
  bool has_begun_ = false;
  StoreTime made_at_{};
  StoreTime changed_at_{};
  StoreTime now_{};
  std::vector<JobTarget> targets_;
  std::vector<JobResult> results_;
  std::uint64_t done_ = 0;
  std::uint64_t refused_ = 0;
  std::string claimer_;
  StoreTime claimed_at_{};
  std::optional<JobCancel> cancel_;
  std::optional<JobEnd> end_;
};

}  // namespace idem::admin
