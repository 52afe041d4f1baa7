#include "admin/jobs/job_decisions.hpp"

#include "loop/store_link.hpp"

#include <algorithm>

namespace idem::admin {
namespace {

using Code = StoreError::Code;
constexpr std::string_view no_state = "none";

std::string_view text_of(const std::optional<State>& state) {
  return state ? idem::name_of(*state) : no_state;
}

StoreCall call_for(const JobDefinition& job, const JobTarget& target, Millis grace) {
  if (job.order.what == JobWhat::release) {
    return CacheBust{target.id, target.fence, reason_in(job), source_in(job)};
  }
  Resolve verb;
  verb.id = target.id;
  verb.as = job.order.as;
  verb.fence = target.fence;
  verb.response = job.order.response;
  verb.source = source_in(job);
  verb.evidence = job.order.evidence;
  verb.reason = reason_in(job);
  verb.observed_at = job.observed_at;
  verb.grace = std::max(job.grace, grace);
  return verb;
}

/// What a store says that cannot be asked about this record: none, if it may answer later.
std::optional<JobResult> final_result(const StoreError& error) {
  switch (error.code) {
    case Code::unavailable:
    case Code::in_doubt:
      return std::nullopt;
    case Code::refused:
    case Code::unstorable:
      return JobResult{"invalid", no_state};
    case Code::damaged:
      return JobResult{"damaged", no_state};
  }
  return std::nullopt;
}

}  // namespace

StoreTask<JobResult> JobDecisions::decide(std::shared_ptr<const JobFold> job, JobTarget target) {
  const bool is_record = is_about_keys(job->definition()->order.what);
  auto deciding = is_record ? decide_record(job, target) : decide_message(job, target);
  auto result = co_await deciding;
  if (result) co_return result;
  const auto final = final_result(result.error());
  if (final) co_return *final;
  co_return result;
}

StoreTask<std::optional<JobResult>> JobDecisions::decided(std::shared_ptr<const JobFold> job,
                                                          JobTarget target) {
  if (is_about_keys(job->definition()->order.what)) {
    auto looking = decided_record(job, target);
    auto result = co_await looking;
    const auto final = result ? std::nullopt : final_result(result.error());
    if (final) co_return std::optional<JobResult>();
    co_return result;
  }
  auto finding = find(to_hex(target.id.bytes));
  const auto message = co_await finding;
  if (!message) co_return std::unexpected(message.error());
  co_return decided_message(*job->definition(), *message);
}

// ---- records ----

Task<StoreResult> JobDecisions::ask(StoreCall call) {
  auto asking = ask_store(loop_, store_, call);
  auto result = co_await asking;
  if (!result) shard_.store_errors.add();
  co_return result;
}

StoreTask<std::optional<JobResult>> JobDecisions::decided_record(std::shared_ptr<const JobFold> job,
                                                                 JobTarget target) {
  auto asking = ask(ReadEvidence{target.id});
  const auto log = co_await asking;
  if (!log) co_return std::unexpected(log.error());
  const JobDefinition& definition = *job->definition();
  const std::string mark = mark_of(definition);
  const std::string source = source_in(definition);
  for (const EvidenceEntry& entry : std::get<std::vector<EvidenceEntry>>(*log)) {
    const bool is_ours =
        entry.fence == target.fence && entry.source == source && entry.reason.ends_with(mark);
    if (is_ours && entry.applied) co_return JobResult{"done", idem::name_of(entry.after)};
  }
  co_return std::optional<JobResult>();
}

// The evidence is read first, because a repeated decision is not always harmless: positive evidence
// about a stored 5xx contests the record. It is read again behind a refusal, because another
// process, which was thought dead, may have decided in between.
StoreTask<JobResult> JobDecisions::decide_record(std::shared_ptr<const JobFold> job,
                                                 JobTarget target) {
  auto looking = decided_record(job, target);
  const auto before = co_await looking;
  if (!before) co_return std::unexpected(before.error());
  if (*before) co_return **before;
  auto asking = ask(call_for(*job->definition(), target, grace_));
  const auto result = co_await asking;
  if (!result) co_return std::unexpected(result.error());
  const auto& reply = std::get<Resolve::Reply>(*result);
  if (job->definition()->order.what == JobWhat::resolve) {
    const auto counted_as = reply.verdict == Resolve::Verdict::done ? metrics::Reconciled::resolved
                                                                    : metrics::Reconciled::failed;
    shard_.reconciled[static_cast<std::size_t>(counted_as)].add();
  }
  if (reply.is_contradicted) {
    shard_.contradictions.add();
    log_(LogLevel::error, "answer_contradicts_event", {{"operation_ref", to_hex(target.id.bytes)}});
  }
  const JobResult made{name_of(reply.verdict), text_of(reply.state)};
  if (is_done(made)) co_return made;
  auto looking_again = decided_record(job, target);
  const auto behind = co_await looking_again;
  if (!behind) co_return std::unexpected(behind.error());
  co_return behind->value_or(made);
}

// ---- messages ----

StoreTask<std::optional<StoredMessage>> JobDecisions::find(std::string id) {
  Transactions* const transactions = store_.transactions();
  using Found = Outbox::Result<std::optional<StoredMessage>>;
  std::function<Found()> work = [transactions, id] { return Outbox(*transactions).find(id); };
  auto asking = run_offloaded(loop_, offload_, work);
  auto&& found = co_await asking;
  if (!found) co_return std::unexpected(StoreError{Code::unavailable, std::move(found.error())});
  co_return std::move(*found);
}

std::optional<JobResult> JobDecisions::decided_message(
    const JobDefinition& job, const std::optional<StoredMessage>& message) {
  // Texts of receivers are in the history, too; none of them knows the job.
  if (!message || !message->history.contains(mark_of(job))) return std::nullopt;
  const auto state = known_result("done", idem::name_of(message->state));
  return state ? *state : JobResult{"done", no_state};
}

// A message that this job has sent again may be dead once more: its history says that its turn in
// this job is over.
StoreTask<JobResult> JobDecisions::decide_message(std::shared_ptr<const JobFold> job,
                                                  JobTarget target) {
  const std::string id = to_hex(target.id.bytes);
  auto finding = find(id);
  const auto message = co_await finding;
  if (!message) co_return std::unexpected(message.error());
  const JobDefinition& definition = *job->definition();
  if (const auto before = decided_message(definition, *message)) co_return *before;
  if (!*message) co_return JobResult{"not_found", no_state};
  const auto state = known_result("not_dead", idem::name_of((*message)->state));
  if ((*message)->state != MessageState::dead) {
    co_return state.value_or(JobResult{"not_dead", no_state});
  }
  const std::string reason = source_in(definition) + ": " + reason_in(definition);
  Transactions* const transactions = store_.transactions();
  using Done = Outbox::Result<std::vector<Ordered>>;
  std::function<Done()> work;
  if (definition.order.what == JobWhat::redrive) {
    const Redrive order{.which = {.id = id, .limit = 1},
                        .rate = 0,
                        .nothing_there = definition.order.nothing_there,
                        .reason = reason};
    work = [transactions, order] { return Outbox(*transactions).redrive(order); };
  } else {
    const Discard order{.which = {.id = id, .limit = 1}, .reason = reason};
    work = [transactions, order] { return Outbox(*transactions).discard(order); };
  }
  auto ordering = run_offloaded(loop_, offload_, work);
  const auto& ordered = co_await ordering;
  if (!ordered) co_return std::unexpected(StoreError{Code::in_doubt, ordered.error()});
  if (ordered->empty()) {
    // Another order has the message, or has changed it since: the next look says which.
    co_return std::unexpected(StoreError{Code::unavailable, "another order has the message"});
  }
  if (ordered->front().verdict == "may_have_arrived") {
    co_return JobResult{"may_have_arrived", "dead"};
  }
  co_return JobResult{"done", definition.order.what == JobWhat::redrive ? "waiting" : "discarded"};
}

}  // namespace idem::admin
