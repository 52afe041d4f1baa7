#pragma once

#include "admin/jobs/job_journals.hpp"
#include "loop/offload.hpp"
#include "metrics/shard.hpp"

#include <idem/log.hpp>
#include <idem/outbox.hpp>

namespace idem::admin {

/// Decides about the records of jobs, one by one. Loop's thread only.
///
/// Each decision leaves a line of its job in the evidence of the record (a message: in its
/// history). Such a line that was applied proves that the job has decided this record, whichever
/// process did it and whatever is written in the job's journal: so no record is decided twice.
/// One message may be sent again twice: a process that stalls between its look at the history and
/// its order finds a message that another one has redriven, and that is dead once more.
class JobDecisions {
 public:
  struct Parts {
    Loop& loop;
    Store& store;
    Offload& offload;
    metrics::Shard& shard;  ///< Counts as single decisions do.
    Millis grace;           ///< As in Resolve; a job that was begun under a longer one keeps that.
    LogSink log;
  };
  /// All parts outlive it.
  explicit JobDecisions(Parts parts)
      : loop_(parts.loop),
        store_(parts.store),
        offload_(parts.offload),
        shard_(parts.shard),
        grace_(parts.grace),
        log_(std::move(parts.log)) {}

  /// What became of the record. Error: the store does not answer, and may have made the decision;
  /// ask again.
  StoreTask<JobResult> decide(std::shared_ptr<const JobFold> job, JobTarget target);

  /// What the job has decided about the record so far; none: nothing.
  StoreTask<std::optional<JobResult>> decided(std::shared_ptr<const JobFold> job, JobTarget target);

 private:
  Task<StoreResult> ask(StoreCall call);
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
  metrics::Shard& shard_;
  Millis grace_;
  LogSink log_;
};

}  // namespace idem::admin
