#pragma once

#include "admin/jobs/job_fold.hpp"
#include "admin/jobs/journal_lines.hpp"
#include "loop/loop.hpp"

#include <idem/store.hpp>

#include <expected>
#include <list>
#include <map>
#include <memory>
#include <span>

namespace idem::admin {

/// Reads and writes the jobs of a store, to which other processes may write, too. Loop's thread
/// only.
class JobJournals {
 public:
  /// Both outlive it.
  JobJournals(Loop& loop, Store& store) : loop_(loop), store_(store) {}
  JobJournals(const JobJournals&) = delete;
  JobJournals& operator=(const JobJournals&) = delete;

  /// A job up to its last line now; null: there is none of this id. Others may see the same object,
  /// and it may move on while they wait for the store.
  StoreTask<std::shared_ptr<JobFold>> read(std::string id);

  /// Appends a line behind the last one that `fold` has seen, and shows it to `fold`. False:
  /// another process has appended, and `fold` has seen what. The call goes out before the first
  /// wait, so that what the caller has checked in `fold` holds for the line.
  StoreTask<bool> append(std::shared_ptr<JobFold> fold, std::string id, std::string line);

  /// Writes a job down, from its definition to its beginning. After an error it has begun or will
  /// never begin, unless another process writes a job of this id.
  StoreTask<std::shared_ptr<JobFold>> begin(JobDefinition definition,
                                            std::span<const JobTarget> targets);

  /// The ids of jobs that may be open.
  StoreTask<std::vector<std::string>> open_jobs();
  /// How long ago the writing of an open job began; none: it is not open.
  StoreTask<std::optional<Millis>> open_for(std::string id);
  /// A job has ended, never begins, or is damaged: no process looks at it any more.
  StoreTask<bool> close(std::string id);

  struct Listed {
    std::vector<std::string> ids;
    std::string next;  ///< Empty: there are no more.
  };
  /// A page of ids, the newest jobs first, those behind `after`.
  StoreTask<Listed> list(std::string after, std::size_t limit);
  /// The definition and the end of a job without all that is between; an open one is read whole.
  /// Null: there is none.
  StoreTask<std::shared_ptr<const JobFold>> summary(std::string id);
  /// Drops one job that ended or never began, or is damaged and rests for limits::job_kept. False:
  /// it has changed, or is open.
  StoreTask<bool> drop(std::string id);
  StoreTask<StoreTime> now();

 private:
  StoreTask<bool> catch_up(std::shared_ptr<JobFold> fold, std::string id);
  template <class Reply>
  StoreTask<Reply> ask(StoreCall call);
  void keep(const std::string& id, const std::shared_ptr<JobFold>& fold);

  Loop& loop_;
  Store& store_;
  std::map<std::string, std::shared_ptr<JobFold>> kept_;
  std::list<std::string> order_;  ///< Of `kept_`: the one that was used last is the first.
};

}  // namespace idem::admin
