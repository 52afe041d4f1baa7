#include "store/change_notifier.hpp"

namespace idem {
namespace {

/// Reports too much rather than too little: a reserve's reply does not say whether the reserve also
/// swept a record, so every reply that can come from a sweep counts.
class NotifyOfChange {
 public:
  NotifyOfChange(Watcher& watcher, const StoreReply& reply) : watcher_(watcher), reply_(reply) {}

  void operator()(const Reserve& verb) const { notify_outcome(verb); }
  void operator()(const Accept& verb) const { notify_outcome(verb.as); }
  void operator()(const Claim&) const {
    if (const auto& claimed = std::get<std::optional<Claimed>>(reply_)) {
      watcher_.changed(claimed->id);
    }
  }
  void operator()(const Renew& verb) const { notify_if_done(verb.id); }
  void operator()(const Complete& verb) const { notify_if_done(verb.id); }
  void operator()(const Release& verb) const { notify_if_done(verb.id); }
  void operator()(const MarkUnknown& verb) const { notify_if_done(verb.id); }
  void operator()(const Resolve& verb) const { notify_if_applied(verb.id); }
  void operator()(const CacheBust& verb) const { notify_if_applied(verb.id); }
  void operator()(const PutRecord& verb) const {
    if (std::get<PutRecord::Reply>(reply_).put) watcher_.changed(verb.id);
  }
  void operator()(const Sweep&) const { notify_steps(); }
  void operator()(const Reap&) const { notify_steps(); }

  // These leave state, attempt and lease of every record as they are.
  void operator()(const Dispatched&) const {}
  void operator()(const Advance&) const {}
  void operator()(const Reschedule&) const {}
  void operator()(const Reseal&) const {}
  void operator()(const Find&) const {}
  void operator()(const List&) const {}
  void operator()(const ReadEvidence&) const {}
  void operator()(const Count&) const {}
  void operator()(const AdoptRoutes&) const {}
  void operator()(const AppendLine&) const {}
  void operator()(const ReadLines&) const {}
  void operator()(const ListJournals&) const {}
  void operator()(const DropJournal&) const {}

 private:
  void notify_outcome(const Reserve& asked) const {
    const auto& outcome = std::get<ReserveOutcome>(reply_);
    const bool untouched = std::holds_alternative<InProgress>(outcome) ||
                           std::holds_alternative<KeyMisuse>(outcome) ||
                           std::holds_alternative<QuotaExceeded>(outcome);
    if (untouched) return;
    watcher_.changed(asked.id);
    for (const auto& other : asked.also) watcher_.changed(other.id);
  }

  void notify_if_done(const RecordId& id) const {
    if (std::get<OwnerReply>(reply_).verdict == Verdict::done) watcher_.changed(id);
  }
  void notify_if_applied(const RecordId& id) const {
    if (std::get<Resolve::Reply>(reply_).verdict == Resolve::Verdict::done) watcher_.changed(id);
  }
  void notify_steps() const {
    for (const auto& step : std::get<std::vector<LifecycleStep>>(reply_)) watcher_.changed(step.id);
  }

  Watcher& watcher_;
  const StoreReply& reply_;
};

}  // namespace

void ChangeNotifier::notify(const StoreCall& call, const StoreResult& result) const noexcept {
  if (!watcher_ || !result) return;
  std::visit(NotifyOfChange(*watcher_, *result), call);
}

}  // namespace idem
