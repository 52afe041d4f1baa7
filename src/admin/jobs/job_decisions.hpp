#pragma once

#include "admin/jobs/job_journals.hpp"
#include "loop/offload.hpp"

#include <idem/log.hpp>
#include <idem/outbox.hpp>

namespace idem::admin {

/// Decides about the records of jobs, one by one. Loop's thread only.
///
/// Each decision leaves a line of its job in the evidence of the record (a message: in its
/// history). Such a line that was applied proves that the job has decided this record, whichever
/// process did it and whatever is written in the job's journal: so no record is decided twice.
class JobDecisions {
 public:
  /// All outlive it. `grace`: as in Resolve.
  JobDecisions(Loop& loop, Store& store, Offload& offload, Millis grace, LogSink log)
      : loop_(loop), store_(store), offload_(offload), grace_(grace), log_(std::move(log)) {}

  /// What became of the record. Error: the store does not answer, and may have made the decision;
  /// ask again.
  StoreTask<JobResult> decide(std::shared_ptr<const JobFold> job, JobTarget target);

  /// What the job has decided about the record so far; none: nothing.
  StoreTask<std::optional<JobResult>> decided(std::shared_ptr<const JobFold> job, JobTarget target);

 private:
  StoreTask<JobResult> decide_record(std::shared_ptr<const JobFold> job, JobTarget target);
  StoreTask<std::optional<JobResult>> decided_record(std::shared_ptr<const JobFold> job,
                                                     JobTarget target);
  StoreTask<JobResult> decide_message(std::shared_ptr<const JobFold> job, JobTarget target);
  StoreTask<std::optional<StoredMessage>> find(std::string id);
  static std::optional<JobResult> decided_message(const JobDefinition& job,
                                                  const std::optional<StoredMessage>& message);

  Loop& loop_;
  Store& store_;
  Offload& offload_;
  Millis grace_;
  LogSink log_;
};

}  // namespace idem::admin
