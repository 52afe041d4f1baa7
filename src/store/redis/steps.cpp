#include "store/redis/steps.hpp"

#include "core/bytes/checksum.hpp"
#include "store/redis/commit.hpp"
#include "store/redis/scripts.hpp"

template class idem::compare_and_set::Steps<idem::redis::Steps, idem::redis::SeenRecord>;

namespace idem::redis {
namespace {

using Code = StoreError::Code;
using transitions::Write;

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

}  // namespace

Steps::Steps(RetryingClient& client, const Names& names, Versions& versions,
             IdentitySteps& identity, std::function<StoreTime()> clock)
    : compare_and_set::Steps<Steps, Seen>(std::move(clock)),
      client_(client),
      names_(names),
      versions_(versions),
      identity_(identity) {}

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

std::string Steps::text_of(const Subject& subject) const {
  return subject.generation ? identity_.text_of(*subject.generation) : std::string();
}

void Steps::put_read(Tried& tried, const Subject& subject, const RecordId& id,
                     const Reply& reply) const {
  const Reply& record = reply.at(2);
  const Reply& answer = reply.at(3);
  const Reply& request = reply.at(4);
  Seen& seen = tried.seen_of(id);
  seen = {.id = id};
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

Task<Outcome> Steps::look(Tried& tried, const Subject& subject) {
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
      tried.why_again = Tried::identity_changes;
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
Task<Outcome> Steps::on_other_generation(const RecordId& id, const Reply& has) {
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

Task<Outcome> Steps::write(Tried& tried, const StoreCall& call, const Subject& subject,
                           const RecordWrite& write, StoreTime now) {
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
    tried.last_fence =
        std::max<Fence>(tried.last_fence, std::strtoull(reply->at(2).text.c_str(), nullptr, 10));
    co_return Next::make_again;
  }
  if (what == "generation") {
    tried.why_again = Tried::identity_changes;
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
  if (tried.is_in_doubt && compare_and_set::is_once(call)) {
    co_return std::unexpected(
        StoreError{Code::in_doubt, "its reply was lost, and the record has changed since"});
  }
  tried.is_in_doubt = false;  // The record in the reply settles it, by its token.
  if (subject.needs_evidence) co_return Next::look_again;
  put_read(tried, subject, write.id, *reply);
  tried.is_read = true;
  co_return Next::make_again;
}

Task<Outcome> Steps::prepare(Tried&, const Subject&, const RecordWrite& written, StoreTime) {
  const bool is_new = begins_attempt(written) || written.change.write == Write::insert;
  if (is_new && !why_no_new_work_.empty()) {
    co_return std::unexpected(StoreError{Code::unavailable, why_no_new_work_});
  }
  co_return Next::make_again;
}

}  // namespace idem::redis
