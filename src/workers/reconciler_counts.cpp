#include "workers/reconciler.hpp"

#include <idem/worker_limits.hpp>

/// Counts and log lines about the reconciler's questions, and notes about those without an answer.
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

// An error status that no rule matches, such as 401, will come again: that is a failure of the
// provider or of the configuration, not a "later".
void Reconciler::count_question(const Task& task, const Asked& answer, StoreTime observed_at) {
  const Provider& provider = *task.provider;
  if (!answer) {
    count_failure(provider, answer.error().reason, answer.error().why);
    return keep_note(task.record, answer.error().why, observed_at);
  }
  constexpr int first_error = 400;
  const Finding finding = judge(provider.says, answer->status, answer->body);
  if (finding == Finding::later && answer->status >= first_error) {
    std::string why = "it answered " + std::to_string(answer->status) + ", which says nothing";
    count_failure(provider, metrics::Unanswered::status, why);
    return keep_note(task.record, std::move(why), observed_at);
  }
  forget_note(task.record);
  ++provider.counts->answers[static_cast<std::size_t>(answered_as(finding))];
  const auto line = provider.counts->availability.answered(MonotonicClock::now());
  if (!line) return;
  log_(LogLevel::info, "provider_recovered",
       {{"provider", provider.name},
        {"failures", line->failures},
        {"seconds", line->lasting.count() / 1'000}});
}

void Reconciler::count_failure(const Provider& provider, metrics::Unanswered reason,
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

// A turn is planned before its question is sent, so the note goes into the evidence log with the
// next plan. Equal reasons in a row give one line, and an attempt has few in all.
void Reconciler::keep_note(const Record& record, std::string why, StoreTime observed_at) {
  const std::lock_guard lock(mutex_);
  if (notes_.size() >= limits::reconcile_waiting_max) notes_.clear();
  Note& note = notes_[{record.id, record.fence()}];
  if (note.why == why) return;
  note.why = std::move(why);
  note.observed_at = observed_at;
  note.is_written = note.lines >= limits::unanswered_lines_max;
}

std::optional<Reconciler::Note> Reconciler::note_to_write(const Record& record) {
  const std::lock_guard lock(mutex_);
  const auto found = notes_.find({record.id, record.fence()});
  if (found == notes_.end() || found->second.is_written) return std::nullopt;
  return found->second;
}

void Reconciler::mark_written(const Record& record) {
  const std::lock_guard lock(mutex_);
  const auto found = notes_.find({record.id, record.fence()});
  if (found == notes_.end()) return;
  found->second.is_written = true;
  ++found->second.lines;
}

void Reconciler::forget_note(const Record& record) {
  const std::lock_guard lock(mutex_);
  notes_.erase({record.id, record.fence()});
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
