#include "store/dynamodb/steps.hpp"

#include "core/bytes/checksum.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"

template class idem::compare_and_set::Steps<idem::dynamodb::Steps, idem::dynamodb::SeenItem>;

namespace idem::dynamodb {
namespace {

using Code = StoreError::Code;
using transitions::Write;

}  // namespace

Steps::Steps(Client& client, RowVersions& versions, IdentitySteps& identity, Tallies& tallies,
             std::function<StoreTime()> clock)
    : compare_and_set::Steps<Steps, SeenItem>(std::move(clock)),
      client_(client),
      versions_(versions),
      identity_(identity),
      tallies_(tallies) {}

std::optional<StoreTime> Steps::now() const {
  if (clock_) return clock_();
  if (!client_.clock().is_known()) return std::nullopt;
  return client_.clock().at(MonotonicClock::now());
}

Task<std::expected<StoreTime, StoreError>> Steps::now_for(RecordId) {
  const auto time = now();
  if (!time) co_return std::unexpected(unknown_time());
  co_return *time;
}

Task<std::optional<StoreError>> Steps::admit(const Subject& subject) {
  if (!subject.generation) co_return std::nullopt;
  auto admitting = identity_.admit(*subject.generation);
  co_return co_await std::move(admitting);
}

// ---- reading ----

Task<std::expected<std::optional<std::string>, NoReply>> Steps::part(
    RecordId id, char kind, std::string_view bytes, const std::vector<PieceRef>& refs) {
  if (refs.empty()) {
    co_return bytes.empty() ? std::nullopt : std::optional(std::string(bytes));
  }
  auto reading = pieces_.read(id, refs.front(), kind);
  co_return co_await std::move(reading);
}

Task<std::expected<std::optional<BytesList>, NoReply>> Steps::log_of(RecordId id, ItemState item) {
  BytesList all;
  for (const PieceRef& ref : item.older_evidence) {
    auto reading = pieces_.read(id, ref, 'e');
    const auto bytes = co_await std::move(reading);
    if (!bytes) co_return std::unexpected(bytes.error());
    if (!*bytes) co_return std::nullopt;
    std::ranges::move(parse_framed(**bytes), std::back_inserter(all));
  }
  std::ranges::move(item.evidence, std::back_inserter(all));
  co_return all;
}

Task<std::expected<bool, NoReply>> Steps::has_changed(RecordId id, std::string version) {
  auto reading = client_.read(record_key(id));
  const auto item = co_await std::move(reading);
  if (!item) co_return std::unexpected(item.error());
  co_return !*item || (*item)->bytes(attribute::version) != version;
}

Task<Steps::Found> Steps::put_read(Tried& tried, const Subject& subject, RecordId id,
                                   std::optional<Item> item) {
  const auto damaged = [&](std::string_view why) {
    tried.table.put(id, std::unexpected(damaged_record(id, why)));
    return Found(Next::make_again);
  };
  tried.seen_of(id).item = item ? state_of(*item) : ItemState{};
  const ItemState state = tried.seen_of(id).item;
  tried.last_fence = std::max(tried.last_fence, state.fence);
  if (!state.has_record) {
    tried.table.put(id, std::nullopt);
    co_return Next::make_again;
  }
  StoredRow row = parse_row(id, item->bytes(attribute::row));
  tried.seen_of(id).item.mark = row.mark;
  if (!row.record) {
    tried.table.put(id, std::unexpected(std::move(row.record.error())));
    co_return Next::make_again;
  }
  if (row.record->state == State::completed && subject.needs_answer) {
    auto reading = part(id, 'a', item->bytes(attribute::answer), state.answer);
    const auto answer = co_await std::move(reading);
    if (!answer) co_return std::unexpected(answer.error());
    if (!*answer) {
      auto looking = has_changed(id, state.version);
      const auto changed = co_await std::move(looking);
      if (!changed) co_return std::unexpected(changed.error());
      if (*changed) co_return Next::look_again;
      co_return damaged("its answer is missing");
    }
    auto response = parse_answer_value(id, **answer);
    if (!response) co_return damaged(response.error());
    row.record->response = std::move(*response);
  }
  if (row.record->stored_request && subject.needs_request) {
    auto reading = part(id, 'q', item->bytes(attribute::request), state.request);
    const auto request = co_await std::move(reading);
    if (!request) co_return std::unexpected(request.error());
    if (!*request) {
      auto looking = has_changed(id, state.version);
      const auto changed = co_await std::move(looking);
      if (!changed) co_return std::unexpected(changed.error());
      if (*changed) co_return Next::look_again;
      co_return damaged("its request is missing");
    }
    const auto sound = without_checksum(id, **request);
    if (!sound) co_return damaged("its request's checksum does not match");
    row.record->stored_request = *sound;
  }
  tried.table.put(id, std::move(*row.record));
  co_return Next::make_again;
}

Task<Outcome> Steps::look(Tried& tried, const Subject& subject) {
  std::vector<RecordId> ids{subject.id};
  ids.insert(ids.end(), subject.also.begin(), subject.also.end());
  std::vector<Question> questions;
  questions.reserve(ids.size());
  for (const RecordId& id : ids) questions.push_back(client_.reading(record_key(id)));
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  tried.table.clear();
  tried.seen.clear();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!all[i]) co_return std::unexpected(to_store_error(all[i].error()));
    const json::Value* const found = all[i]->body.find("Item");
    std::optional<Item> item;
    if (found != nullptr) item = Item::parse(*found);
    Task<Found> putting = put_read(tried, subject, ids[i], std::move(item));
    const Found put = co_await std::move(putting);
    if (!put) co_return std::unexpected(to_store_error(put.error()));
    if (*put == Next::look_again) co_return Next::look_again;
    if (!subject.needs_evidence) continue;
    auto reading = log_of(ids[i], tried.seen_of(ids[i]).item);
    const auto lines = co_await std::move(reading);
    if (!lines) co_return std::unexpected(to_store_error(lines.error()));
    if (!*lines) co_return Next::look_again;
    std::vector<EvidenceEntry> log;
    for (const std::string& line : **lines) {
      auto entry = parse_evidence_value(ids[i], line);
      if (!entry) co_return std::unexpected(damaged_record(ids[i], entry.error()));
      log.push_back(std::move(*entry));
    }
    tried.table.put_evidence(std::move(log));
  }
  tried.is_read = true;
  co_return Next::make_again;
}

Task<std::expected<std::vector<EvidenceEntry>, StoreError>> Steps::evidence_of(RecordId id) {
  std::optional<std::string> version_before;
  for (int races = 0; races < limits::compare_and_set_races_max; ++races) {
    auto reading = client_.read(record_key(id));
    const auto item = co_await std::move(reading);
    if (!item) co_return std::unexpected(to_store_error(item.error()));
    const ItemState state = *item ? state_of(**item) : ItemState{};
    auto reading_log = log_of(id, state);
    const auto lines = co_await std::move(reading_log);
    if (!lines) co_return std::unexpected(to_store_error(lines.error()));
    if (!*lines) {
      if (version_before == state.version) {
        co_return std::unexpected(damaged_record(id, "lines of its evidence are missing"));
      }
      version_before = state.version;
      continue;
    }
    std::vector<EvidenceEntry> log;
    for (const std::string& line : **lines) {
      auto entry = parse_evidence_value(id, line);
      if (!entry) co_return std::unexpected(damaged_record(id, entry.error()));
      log.push_back(std::move(*entry));
    }
    co_return log;
  }
  co_return std::unexpected(StoreError{Code::unavailable, "writers keep changing this record"});
}

// ---- the step ----

Task<Outcome> Steps::prepare(Tried& tried, const Subject& subject, const RecordWrite& written,
                             StoreTime now) {
  // These need what only a reading shows: what the item holds beside the record.
  const bool needs_reading = written.change.write == Write::erase || !written.evidence.empty();
  if (needs_reading && !tried.is_read) co_return Next::look_again;
  const bool is_first = written.change.write == Write::insert && subject.generation;
  if (is_first && !subject.also.empty() && identity_.may_have_late_writes(now)) {
    Task<Outcome> blocking = block_old_names(tried, subject, now);
    const Outcome blocked = co_await std::move(blocking);
    if (!blocked || *blocked == Next::look_again) co_return blocked;
  }
  // What came before may have taken a while.
  if (subject.generation && !identity_.is_admitted(*subject.generation)) {
    tried.why_again = Tried::identity_changes;
    co_return Next::look_again;
  }
  co_return Next::make_again;
}

// A reserve of the former generation may still be on its way to an old name. It was sent on the
// condition that there is no item there, so an item without a record stops it, and its sender then
// finds that its generation is over.
Task<Outcome> Steps::block_old_names(Tried& tried, const Subject& subject, StoreTime now) {
  for (const RecordId& other : subject.also) {
    Seen& seen = tried.seen_of(other);
    if (!seen.item.version.empty()) continue;
    const std::string version(bytes_of(versions_.next()));
    const StoreTime until = now + limits::dynamodb_blank_time;
    Update blank(record_key(other));
    blank.if_absent()
        .set(attribute::version, Bytes{version})
        .set(attribute::due, list_part(list_of_blanks, other.bytes.back() % list_parts))
        .set(attribute::due_at, until.time_since_epoch().count());
    Task<ReplyResult> writing = client_.write(blank);
    const ReplyResult reply = co_await std::move(writing);
    if (!reply) co_return std::unexpected(StoreError{Code::unavailable, reply.error().why});
    if (reply->is_refused) co_return Next::look_again;
    tried.seen_of(other).item.version = version;
  }
  co_return Next::make_again;
}

void Steps::keep(const RecordWrite& write, const RowVersion& version) {
  const bool runs =
      write.change.write != Write::none && write.after && write.after->state == State::in_progress;
  if (runs) {
    attempts_.keep(version, *write.after);
  } else {
    attempts_.forget(write.id);
  }
}

Task<Outcome> Steps::write(Tried& tried, const StoreCall& call, const Subject& subject,
                           RecordWrite& write, StoreTime now) {
  auto& after = write.after;
  const bool leases = after && after->state == State::in_progress &&
                      !std::holds_alternative<PutRecord>(call) &&
                      (!write.before || write.before->locked_until != after->locked_until);
  // The service's time may be later than `now`, and another node may know it better: a lease lasts
  // for its whole length by every node's estimate.
  if (leases && !clock_) after->locked_until += client_.clock().uncertainty(MonotonicClock::now());
  const RowVersion version = versions_.next();
  RecordUpdate record(write, tried.seen_of(write.id).item, version, now);
  for (LargePart& large : record.large_parts()) {
    auto putting = pieces_.write(write.id, version, large.kind, std::move(large.bytes), now);
    const auto ref = co_await std::move(putting);
    if (!ref) co_return std::unexpected(to_store_error(ref.error()));
    record.name_pieces(large.kind, *ref);
  }
  bool was_in_doubt = false;
  Client::MaySend may_send;
  if (subject.generation) {
    may_send = [this, generation = *subject.generation] {
      return identity_.is_admitted(generation);
    };
  }
  Task<ReplyResult> asking =
      record.is_erase() ? client_.erase(record.update(), &was_in_doubt)
                        : client_.write(record.update(), &was_in_doubt, std::move(may_send));
  ReplyResult reply = co_await std::move(asking);
  tried.is_in_doubt |= was_in_doubt;
  if (!reply && reply.error().was_kept_back) {
    tried.why_again = Tried::identity_changes;
    co_return was_in_doubt ? Next::look_again : Next::make_again;
  }
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  if (reply->is_refused) {
    Task<Outcome> refused =
        on_refused(tried, call, subject, write, std::string(bytes_of(version)), std::move(*reply));
    const Outcome outcome = co_await std::move(refused);
    if (!outcome || *outcome != Next::written) co_return outcome;
  }
  keep(write, version);
  for (const auto& [kind, ref] : record.dropped()) {
    client_.loop().spawn_beside(pieces_.remove(write.id, ref, kind));
  }
  co_return Next::written;
}

/// Another write came first, or an earlier try of this one, whose answer was lost.
Task<Outcome> Steps::on_refused(Tried& tried, const StoreCall& call, const Subject& subject,
                                const RecordWrite& write, std::string version, Reply reply) {
  attempts_.forget(write.id);
  std::optional<Item> item;
  if (const json::Value* const found = reply.body.find("Item")) item = Item::parse(*found);
  if (!item) {  // There is none, or the service does not return it.
    auto reading = client_.read(record_key(write.id));
    auto read = co_await std::move(reading);
    if (!read) {
      co_return std::unexpected(compare_and_set::of_reading(to_store_error(read.error())));
    }
    item = std::move(*read);
  }
  if (item && item->bytes(attribute::version) == version) co_return Next::written;
  if (tried.is_in_doubt && compare_and_set::is_once(call)) {
    co_return std::unexpected(
        StoreError{Code::in_doubt, "its reply was lost, and the record has changed since"});
  }
  tried.is_in_doubt = false;  // The item that lies there settles it, by its token.
  if (subject.needs_evidence) co_return Next::look_again;
  Task<Found> putting = put_read(tried, subject, write.id, std::move(item));
  const Found put = co_await std::move(putting);
  if (!put) co_return std::unexpected(compare_and_set::of_reading(to_store_error(put.error())));
  tried.is_read = true;
  co_return *put;
}

void Steps::is_written(const RecordWrite& write) {
  const auto state = [](const std::optional<Record>& record) {
    return record ? std::optional(record->state) : std::nullopt;
  };
  tallies_.moved(state(write.before), state(write.after));
}

Task<void> Steps::end_blank(RecordId id) {
  auto reading = client_.read(record_key(id));
  const auto item = co_await std::move(reading);
  const auto time = now();
  if (!item || !*item || !time) co_return;
  const ItemState state = state_of(**item);
  const auto due = (*item)->number(attribute::due_at);
  const bool is_over = !state.has_record && due && StoreTime(Millis(*due)) <= *time;
  if (!is_over) co_return;
  Update change(record_key(id));
  change.if_equal(attribute::version, Bytes{state.version});
  if (state.has_log()) change.remove(attribute::due).remove(attribute::due_at);
  Task<ReplyResult> asking = state.has_log() ? client_.write(change) : client_.erase(change);
  (void)co_await std::move(asking);
}

}  // namespace idem::dynamodb
