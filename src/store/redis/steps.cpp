#include "store/redis/steps.hpp"

#include "core/bytes/checksum.hpp"
#include "core/transitions/store_steps.hpp"
#include "store/redis/commit.hpp"
#include "store/redis/scripts.hpp"
#include "store/verb_traits.hpp"

#include <idem/crash_point.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem::redis {
namespace {

using Code = StoreError::Code;
using transitions::Write;

const StoreCall reap_one{Reap{1}};

std::string scope_of(const RecordWrite& write) {
  const auto& record = write.after ? write.after : write.before;
  return record ? record->scope : std::string();
}

std::string parts_of(const Subject& subject) {
  std::string parts;
  if (subject.needs_answer) parts += 'a';
  if (subject.needs_request) parts += 'q';
  if (subject.needs_evidence) parts += 'e';
  return parts;
}

/// The end of an attempt stays true at any later time, and a record that is put has its moments
/// from elsewhere.
bool depends_on_now(const StoreCall& call) {
  return !traits_of(call).ends_attempt && !std::holds_alternative<PutRecord>(call);
}

/// A repeat does more, or its reply differs.
bool is_once(const StoreCall& call) {
  return !traits_of(call).is_repeatable && !traits_of(call).is_lifecycle;
}

}  // namespace

Steps::Steps(RetryingClient& client, const Names& names, Versions& versions,
             IdentitySteps& identity, std::function<StoreTime()> clock)
    : client_(client),
      names_(names),
      versions_(versions),
      identity_(identity),
      clock_(std::move(clock)) {}

Steps::Seen& Steps::Try::seen_of(const RecordId& id) {
  const auto found = std::ranges::find(seen, id, &Seen::id);
  return found != seen.end() ? *found : seen.emplace_back(Seen{id, {}});
}

std::unexpected<StoreError> Steps::Try::failed(StoreError error) const {
  if (is_in_doubt) error.code = Code::in_doubt;
  return std::unexpected(std::move(error));
}

Task<std::expected<StoreTime, StoreError>> Steps::now_at(unsigned slot) {
  if (clock_) co_return clock_();
  Connection* connection = client_.servers().open_at(slot);
  if (connection == nullptr) {
    Task<Connection*> reaching = client_.servers().of(slot);
    connection = co_await std::move(reaching);
  }
  if (connection == nullptr || !connection->clock.is_known()) {
    co_return std::unexpected(
        StoreError{Code::unavailable, "the store cannot be reached: " + client_.servers().why()});
  }
  co_return connection->clock.at(MonotonicClock::now());
}

void Steps::update_clock(unsigned slot, const Reply& reply) {
  Connection* const connection = client_.servers().open_at(slot);
  if (connection == nullptr || reply.at(1).kind != Reply::Kind::number) return;
  connection->clock.observe(StoreTime(Millis(reply.at(1).number)), MonotonicClock::now());
}

// Fences come from the clock, in microseconds, so that they grow also after the loss of a record or
// of a whole server; never twice the same, and above every known fence of these records.
Fence Steps::last_fence_before(const Try& tried, StoreTime now) const {
  const auto micros = std::chrono::microseconds(now.time_since_epoch()).count();
  Fence last = std::max({last_fence_, static_cast<Fence>(micros), tried.last_fence});
  return std::max(last, tried.table.highest_fence());
}

Steps::Next Steps::assume(Try& tried, const Subject& subject) const {
  if (!subject.also.empty() || subject.needs_evidence || subject.needs_request) {
    return Next::look_again;
  }
  if (subject.is_new_work) {
    tried.table.put(subject.id, std::nullopt);
    return Next::make_again;
  }
  const Attempts::Kept* const kept = attempts_.find(subject.id);
  if (kept == nullptr) return Next::look_again;
  tried.table.put(subject.id, kept->record);
  tried.seen_of(subject.id).version = bytes_of(kept->version);
  return Next::make_again;
}

std::string Steps::text_of(const Subject& subject) const {
  return subject.generation ? identity_.text_of(*subject.generation) : std::string();
}

void Steps::put_read(Try& tried, const Subject& subject, const RecordId& id,
                     const Reply& reply) const {
  const Reply& record = reply.at(2);
  const Reply& answer = reply.at(3);
  const Reply& request = reply.at(4);
  Seen& seen = tried.seen_of(id);
  seen = {id, {}};
  if (record.kind != Reply::Kind::text) return tried.table.put(id, std::nullopt);
  StoredRow row = parse_row(id, record.text);
  seen.version = bytes_of(row.version);
  seen.mark = row.mark;
  if (!row.record) return tried.table.put(id, std::unexpected(std::move(row.record.error())));
  const bool is_answered = row.record->state == State::completed && subject.needs_answer;
  if (is_answered && answer.kind != Reply::Kind::text) {
    return tried.table.put(id, std::unexpected(damaged_record(id, "its answer is missing")));
  }
  if (answer.kind == Reply::Kind::text) {
    auto response = parse_answer_value(id, answer.text);
    if (!response)
      return tried.table.put(id, std::unexpected(damaged_record(id, response.error())));
    row.record->response = std::move(*response);
  }
  if (row.record->stored_request && subject.needs_request && request.kind != Reply::Kind::text) {
    return tried.table.put(id, std::unexpected(damaged_record(id, "its request is missing")));
  }
  if (request.kind == Reply::Kind::text) {
    const auto sound = without_checksum(id, request.text);
    if (!sound) {
      return tried.table.put(
          id, std::unexpected(damaged_record(id, "its request's checksum does not match")));
    }
    row.record->stored_request = *sound;
  }
  tried.table.put(id, std::move(*row.record));
}

Task<Steps::Outcome> Steps::look(Try& tried, const Subject& subject) {
  std::vector<RecordId> ids{subject.id};
  ids.insert(ids.end(), subject.also.begin(), subject.also.end());
  std::vector<Question> questions;
  for (const RecordId& id : ids) {
    Question question{names_.of(id).slot, {}};
    scripts()
        .look.call(question.command, names_.of(id).tag, 3)
        .add(text_of(subject))
        .add(bytes_of(id))
        .add(parts_of(subject));
    questions.push_back(std::move(question));
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  tried.table.clear();
  tried.seen.clear();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!all[i]) co_return std::unexpected(to_store_error(all[i].error()));
    const Reply& reply = *all[i];
    update_clock(names_.of(ids[i]).slot, reply);
    if (reply.at(0).text == "generation") {
      tried.why_again = "the store's identity is being changed";
      auto waiting = on_other_generation(ids[i], reply.at(2));
      co_return co_await std::move(waiting);
    }
    if (reply.at(0).text == "lost") co_return std::unexpected(lost(ids[i], reply.at(2).text));
    put_read(tried, subject, ids[i], reply);
    if (!subject.needs_evidence) continue;
    std::vector<EvidenceEntry> log;
    for (const Reply& line : reply.at(5).items) {
      auto entry = parse_evidence_value(ids[i], line.text);
      if (!entry) co_return std::unexpected(damaged_record(ids[i], entry.error()));
      log.push_back(std::move(*entry));
    }
    tried.table.put_evidence(std::move(log));
  }
  tried.is_read = true;
  co_return Next::make_again;
}

// The bucket names records by another generation than the caller: the caller's is over, or a new
// one is being made.
Task<Steps::Outcome> Steps::on_other_generation(const RecordId& id, const Reply& has) {
  if (has.text.starts_with("copied:")) {
    co_return std::unexpected(
        StoreError{Code::refused,
                   "the store is an unfinished copy, or its copy has taken its place: see idem "
                   "store copy"});
  }
  if (has.kind == Reply::Kind::text && has.text != "closed") {
    co_return std::unexpected(StoreError{
        Code::refused,
        "the store's identity is of generation " + has.text.substr(0, has.text.find(':'))});
  }
  if (has.kind != Reply::Kind::text) co_return std::unexpected(lost(id, "bucket"));
  Task<void> repairing = repair(bucket_of(id));
  co_await std::move(repairing);
  Task<void> pausing = client_.pause();
  co_await std::move(pausing);
  co_return Next::look_again;
}

StoreError Steps::lost(const RecordId& id, std::string_view what) const {
  if (what == "record") return damaged_record(id, "the server has evicted it");
  return {Code::unavailable, "the store has lost the records of this bucket (" + names_.of(id).tag +
                                 "), so it is unknown what ran: it admits no new work"};
}

Task<void> Steps::repair(std::size_t bucket) {
  if (is_repairing_) co_return;
  is_repairing_ = true;
  Task<void> repairing = identity_.repair(bucket);
  co_await std::move(repairing);
  is_repairing_ = false;
}

void Steps::keep(const RecordWrite& write, const Version& version) {
  const bool runs = write.after && write.after->state == State::in_progress;
  if (runs) {
    attempts_.keep(version, *write.after);
  } else if (write.change.write != Write::none) {
    attempts_.forget(write.id);
  }
}

Task<Steps::Outcome> Steps::write(Try& tried, const StoreCall& call, const Subject& subject,
                                  const RecordWrite& write, StoreTime now) {
  tried.why_again = Try::others_write;
  const Version version = versions_.next();
  const Seen seen = tried.seen_of(write.id);
  const unsigned slot = names_.of(write.id).slot;
  Question question{slot, to_command({.write = write,
                                      .read_version = seen.version,
                                      .version = version,
                                      .kept_mark = seen.mark,
                                      .now = now,
                                      .check_now = !clock_ && depends_on_now(call),
                                      .generation = text_of(subject),
                                      .wants_answer = subject.needs_answer,
                                      .wants_request = subject.needs_request,
                                      .is_copy = std::holds_alternative<PutRecord>(call)},
                                     names_)};
  // A repeat of a write that only appends to the evidence log would append twice.
  const bool may_repeat =
      write.change.write == Write::insert || write.change.write == Write::update;
  bool was_in_doubt = false;
  Task<QuestionResult> asking = may_repeat ? client_.ask(std::move(question), &was_in_doubt)
                                           : client_.ask_once(std::move(question));
  const QuestionResult reply = co_await std::move(asking);
  tried.is_in_doubt |= was_in_doubt;
  // An existing record needs no new memory.
  if (!reply && reply.error().is_full && !tried.is_read) co_return Next::look_again;
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  update_clock(slot, *reply);
  const std::string& what = reply->at(0).text;
  if (what == "done") {
    keep(write, version);
    co_return Next::written;
  }
  if (what == "clock") {
    tried.why_again =
        "its server runs commands more than a second after it got them: too late "
        "for a step that is made for its moment";
    co_return Next::make_again;
  }
  if (what == "fence") {
    tried.last_fence = std::strtoull(reply->at(2).text.c_str(), nullptr, 10);
    co_return Next::make_again;
  }
  if (what == "generation") {
    tried.why_again = "the store's identity is being changed";
    auto waiting = on_other_generation(write.id, reply->at(2));
    co_return co_await std::move(waiting);
  }
  if (what == "lost") {
    attempts_.forget(write.id);
    co_return std::unexpected(lost(write.id, reply->at(2).text));
  }
  if (what != "other") {
    co_return std::unexpected(StoreError{Code::in_doubt, "the store's reply is unknown"});
  }
  attempts_.forget(write.id);
  if (tried.is_in_doubt && is_once(call)) {
    co_return std::unexpected(
        StoreError{Code::in_doubt, "its reply was lost, and the record has changed since"});
  }
  tried.is_in_doubt = false;  // The record in the reply settles it, by its token.
  if (subject.needs_evidence) co_return Next::look_again;
  put_read(tried, subject, write.id, *reply);
  tried.is_read = true;
  co_return Next::make_again;
}

std::optional<RecordId> Steps::found_under_other_name(const Try& tried, const Subject& subject,
                                                      const RecordWrite& write) {
  if (write.change.write != Write::insert) return std::nullopt;
  for (const Seen& seen : tried.seen) {
    if (seen.id != subject.id && !seen.version.empty()) return seen.id;
  }
  return std::nullopt;
}

Task<std::expected<std::optional<Record>, StoreError>> Steps::look_at(RecordId id) {
  Try tried;
  const Subject subject{.id = id, .needs_answer = true, .needs_request = true};
  Task<Outcome> looking = look(tried, subject);
  const Outcome looked = co_await std::move(looking);
  if (!looked) co_return std::unexpected(looked.error());
  Task<std::expected<StoreTime, StoreError>> asking_time = now_at(names_.of(id).slot);
  const auto now = co_await std::move(asking_time);
  if (!now) co_return std::unexpected(now.error());
  auto row = tried.table.load(id, RecordTable::Parts::all, *now);
  if (!row) co_return std::unexpected(std::move(row.error()));
  std::optional<Record> record;
  if (*row) record = std::move((*row)->record);
  co_return transitions::view(std::move(record), *now);
}

StoreResult Steps::step(Try& tried, const StoreCall& call, const Subject& subject, StoreTime now) {
  transitions::FenceCounter fences{last_fence_before(tried, now)};
  Naming naming{.generation = subject.generation.value_or(0)};
  StoreCall made = call;
  tried.table.begin_step();
  StoreResult result = do_step(made, {tried.table, fences, tried.table, now, naming});
  last_fence_ = std::max(last_fence_, fences.last);
  return result;
}

Task<Steps::Outcome> Steps::commit(Try& tried, const StoreCall& call, const Subject& subject,
                                   const RecordWrite& written, StoreTime now) {
  const bool is_new = begins_attempt(written) || written.change.write == Write::insert;
  if (is_new && !why_no_new_work_.empty()) {
    co_return std::unexpected(StoreError{Code::unavailable, why_no_new_work_});
  }
  const bool ended_a_lease = tried.table.ended_a_lease();
  if (subject.is_new_work) crash_point(CrashPoint::reserve_before_commit);
  if (traits_of(call).ends_attempt) crash_point(CrashPoint::settle_before_commit);
  const std::string scope = scope_of(written);
  if (!written.usage.is_none()) usage_.begin(scope, written.usage);
  Task<Outcome> writing = write(tried, call, subject, written, now);
  Outcome outcome = co_await std::move(writing);
  // A write in doubt counts as done; the next reading corrects it.
  const bool is_written = outcome ? *outcome == Next::written
                                  : tried.is_in_doubt || outcome.error().code == Code::in_doubt;
  if (!written.usage.is_none()) usage_.end(scope, written.usage, is_written);
  if (outcome && *outcome == Next::written) {
    if (subject.is_new_work) crash_point(CrashPoint::reserve_after_commit);
    if (traits_of(call).ends_attempt) crash_point(CrashPoint::settle_after_commit);
    if (ended_a_lease) ++leases_ended_;
  }
  co_return outcome;
}

Task<StoreResult> Steps::make(const StoreCall& call, Subject subject) {
  const MonotonicTime until = MonotonicClock::now() + limits::store_repeat_max;
  Try tried;
  Next next = assume(tried, subject);
  unsigned slot = names_.of(subject.id).slot;
  for (int races = 0; races < limits::redis_races_max; ++races) {
    if (next == Next::look_again) {
      Task<Outcome> looking = look(tried, subject);
      const Outcome looked = co_await std::move(looking);
      if (!looked) co_return tried.failed(looked.error());
      if (*looked == Next::look_again) {
        if (MonotonicClock::now() < until) continue;
        break;
      }
    }
    Task<std::expected<StoreTime, StoreError>> asking_time = now_at(slot);
    const auto now = co_await std::move(asking_time);
    if (!now) co_return tried.failed(now.error());

    if (subject.quota) {
      auto looking = usage_.look_at(subject.scope, *subject.quota);
      const auto unknown = co_await std::move(looking);
      if (unknown) co_return tried.failed(*unknown);
      tried.table.put_usage(usage_.of(subject.scope));
    }
    StoreResult result = step(tried, call, subject, *now);
    if (!result) co_return result;
    const RecordWrite written = tried.table.take_write();
    if (written.is_empty()) {
      if (tried.is_read) co_return result;
      next = Next::look_again;  // An assumed record proves nothing.
      continue;
    }
    if (const unsigned its = names_.of(written.id).slot; its != slot) {
      slot = its;  // The record has another name, and so perhaps another server with its own clock.
      next = Next::make_again;
      continue;
    }
    // An expired record under another name must go before a new one is made: by another server's
    // clock it may not be over yet, and another caller could resume it.
    if (const auto over = found_under_other_name(tried, subject, written)) {
      Task<StoreResult> reaping = make(reap_one, {.id = *over});
      const StoreResult reaped = co_await std::move(reaping);
      if (!reaped) co_return tried.failed(reaped.error());
      next = Next::look_again;
      continue;
    }
    Task<Outcome> committing = commit(tried, call, subject, written, *now);
    const Outcome outcome = co_await std::move(committing);
    if (!outcome) co_return tried.failed(outcome.error());
    next = *outcome;
    if (next == Next::written) co_return result;
    if (MonotonicClock::now() >= until) break;
  }
  co_return tried.failed({Code::unavailable, std::string(tried.why_again)});
}

}  // namespace idem::redis
