#include "workers/reconciler.hpp"

#include <idem/worker_limits.hpp>

/// What is told of the reconciler's questions and of their ends: counts, few lines, and why nothing
/// was answered.
namespace idem::workers {
namespace {

metrics::Answered answered_as(Finding finding) noexcept {
  switch (finding) {
    case Finding::found:
      return metrics::Answered::found;
    case Finding::failed:
      return metrics::Answered::failed;
    case Finding::not_there:
      return metrics::Answered::not_there;
    case Finding::later:
      return metrics::Answered::later;
  }
  return metrics::Answered::later;
}

}  // namespace

// Of a status that says nothing, such as 401, the next question gets no other answer by itself:
// that is a failure of the provider's, or of the configuration, and no "later".
void Reconciler::count_question(const Task& task, const Asked& heard, StoreTime observed_at) {
  const Provider& provider = *task.provider;
  if (!heard) {
    tell_failing(provider, heard.error().reason, heard.error().why);
    return keep_why(task.record, heard.error().why, observed_at);
  }
  constexpr int first_error = 400;
  const Finding finding = judge(provider.says, heard->status, heard->body);
  if (finding == Finding::later && heard->status >= first_error) {
    std::string why = "it answered " + std::to_string(heard->status) + ", which says nothing";
    tell_failing(provider, metrics::Unanswered::status, why);
    return keep_why(task.record, std::move(why), observed_at);
  }
  forget_why(task.record);
  ++provider.counts->answers[static_cast<std::size_t>(answered_as(finding))];
  const auto line = provider.counts->availability.answered(MonotonicClock::now());
  if (!line) return;
  log_(LogLevel::info, "provider_recovered",
       {{"provider", provider.name},
        {"failures", line->failures},
        {"seconds", line->lasting.count() / 1'000}});
}

void Reconciler::tell_failing(const Provider& provider, metrics::Unanswered reason,
                              const std::string& why) {
  ++provider.counts->failures[static_cast<std::size_t>(reason)];
  const auto line = provider.counts->availability.failed(MonotonicClock::now(),
                                                         metrics::name_of(reason), why, false);
  if (!line) return;
  log_(LogLevel::warning, "provider_failing",
       {{"provider", provider.name},
        {"reason", std::string(metrics::name_of(reason))},
        {"detail", why},
        {"failures", line->failures},
        {"seconds", line->lasting.count() / 1'000}});
}

// The turn is planned before it is known what comes of it, so that the evidence has it with the
// next plan. One line for each reason in a row, and few in all.
void Reconciler::keep_why(const Record& record, std::string why, StoreTime observed_at) {
  const std::lock_guard lock(mutex_);
  if (untold_.size() >= limits::reconcile_waiting_max) untold_.clear();
  Untold& untold = untold_[{record.id, record.attempt.fence}];
  if (untold.why == why) return;
  untold.why = std::move(why);
  untold.observed_at = observed_at;
  untold.is_told = untold.lines >= limits::unanswered_lines_max;
}

std::optional<Reconciler::Untold> Reconciler::untold_about(const Record& record) {
  const std::lock_guard lock(mutex_);
  const auto found = untold_.find({record.id, record.attempt.fence});
  if (found == untold_.end() || found->second.is_told) return std::nullopt;
  return found->second;
}

void Reconciler::note_told(const Record& record) {
  const std::lock_guard lock(mutex_);
  const auto found = untold_.find({record.id, record.attempt.fence});
  if (found == untold_.end()) return;
  found->second.is_told = true;
  ++found->second.lines;
}

void Reconciler::forget_why(const Record& record) {
  const std::lock_guard lock(mutex_);
  untold_.erase({record.id, record.attempt.fence});
}

void Reconciler::count(const std::vector<Task>& tasks) {
  for (const Task& task : tasks) {
    for (const End end : task.ends) {
      switch (end) {
        case End::scheduled:
          shard_.reconciled[static_cast<std::size_t>(metrics::Reconciled::scheduled)].add();
          break;
        case End::resolved:
          shard_.reconciled[static_cast<std::size_t>(metrics::Reconciled::resolved)].add();
          break;
        case End::failed:
          shard_.reconciled[static_cast<std::size_t>(metrics::Reconciled::failed)].add();
          break;
        case End::contradicted:
          shard_.contradictions.add();
          break;
      }
    }
  }
}

}  // namespace idem::workers
