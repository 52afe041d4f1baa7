#include "store/dynamodb/scan_queries.hpp"

#include "core/transitions/record_table.hpp"
#include "core/transitions/transitions.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"
#include "store/dynamodb/query.hpp"

#include <algorithm>

namespace idem::dynamodb {
namespace {

/// The states that lie in few records at a time: their list is shorter than the table.
std::optional<char> short_list_of(const std::optional<State>& state) {
  if (!state) return std::nullopt;
  switch (*state) {
    case State::pending:
    case State::in_progress:
    case State::unknown:
    case State::failed_retryable:
      return list_of(*state);
    case State::completed:
    case State::expired:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Record> record_in(const Item& item) {
  const auto id = to_id(item.bytes(attribute::sort));
  if (!id || !item.has(attribute::row)) return std::nullopt;
  StoredRow row = parse_row(*id, item.bytes(attribute::row));
  if (!row.record) return std::nullopt;
  row.record->response = marked_answer(row.mark);
  return std::move(*row.record);
}

/// The same for a listing: a damaged record has a row there.
std::optional<Record> listed_in(const Item& item) {
  auto record = record_in(item);
  const auto id = to_id(item.bytes(attribute::sort));
  if (!record && id && item.has(attribute::row)) record = damaged_row(*id);
  return record;
}

}  // namespace

// ---- due records ----

Task<DueResult> ScanQueries::due_in(Index index, std::vector<std::string> parts, StoreTime now,
                                    std::size_t limit) {
  if (limit == 0) co_return std::vector<Due>{};
  std::vector<Question> questions;
  for (const std::string& part : parts) {
    Query query(client_.table());
    query.member("IndexName", index.name);
    query.limit(limit);
    query.name("#l", index.list).name("#m", index.moment).value(":l", part);
    query.value(":m", now.time_since_epoch().count()).where("#l = :l AND #m <= :m");
    questions.push_back(query.finish());
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  std::vector<Due> found;
  for (const ReplyResult& reply : all) {
    if (!reply) co_return std::unexpected(to_store_error(reply.error()));
    for (const Item& item : parse_page(*reply).items) {
      const auto id = to_id(item.bytes(attribute::sort));
      const auto at = item.number(index.moment);
      if (id && at) found.push_back({StoreTime(Millis(*at)), *id});
    }
  }
  const auto by_age = [](const Due& one) { return std::pair(one.at, one.id); };
  std::ranges::sort(found, {}, by_age);
  if (found.size() > limit) found.resize(limit);
  co_return found;
}

Task<DueResult> ScanQueries::due(std::string lists, StoreTime now, std::size_t limit) {
  std::vector<std::string> parts;
  for (const char list : lists) {
    for (std::size_t part = 0; part < list_parts; ++part) parts.push_back(list_part(list, part));
  }
  auto asking =
      due_in({due_index, attribute::due, attribute::due_at}, std::move(parts), now, limit);
  co_return co_await std::move(asking);
}

Task<DueResult> ScanQueries::claimable(StoreTime now, std::size_t limit) {
  std::vector<std::string> parts;
  parts.reserve(list_parts);
  for (std::size_t part = 0; part < list_parts; ++part) parts.push_back(list_part('c', part));
  auto asking = due_in({claims_index, attribute::claims, attribute::claimable_at}, std::move(parts),
                       now, limit);
  co_return co_await std::move(asking);
}

Task<void> ScanQueries::hide(RecordId id, bool from_claims) {
  auto reading = client_.read(record_key(id));
  const auto item = co_await std::move(reading);
  if (!item || !*item) co_return;
  if (from_claims && !(*item)->has(attribute::claims)) co_return;
  Update update(record_key(id));
  update.if_equal(attribute::version, Bytes{std::string((*item)->bytes(attribute::version))})
      .set(from_claims ? attribute::claimable_at : attribute::due_at, never_due);
  Task<ReplyResult> writing = client_.write(update);
  (void)co_await std::move(writing);
}

// ---- listings ----

Task<std::expected<std::vector<RecordId>, StoreError>> ScanQueries::ids_in(char list) {
  std::vector<RecordId> ids;
  for (std::size_t part = 0; part < list_parts; ++part) {
    std::string from;
    do {
      Query query(client_.table());
      query.member("IndexName", due_index);
      query.name("#l", attribute::due).value(":l", list_part(list, part)).where("#l = :l");
      query.from(from);
      Task<ReplyResult> asking = client_.ask(query.finish());
      const ReplyResult reply = co_await std::move(asking);
      if (!reply) co_return std::unexpected(to_store_error(reply.error()));
      Page page = parse_page(*reply);
      for (const Item& item : page.items) {
        if (const auto id = to_id(item.bytes(attribute::sort))) ids.push_back(*id);
      }
      from = std::move(page.next);
    } while (!from.empty());
  }
  // A record that moved between two pages may be on both.
  std::ranges::sort(ids);
  const auto twice = std::ranges::unique(ids);
  ids.erase(twice.begin(), twice.end());
  co_return ids;
}

Task<ScanQueries::Rows> ScanQueries::read(std::vector<RecordId> ids) {
  std::vector<Question> questions;
  questions.reserve(ids.size());
  for (const RecordId& id : ids) questions.push_back(client_.reading(record_key(id)));
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  std::vector<Record> records;
  for (const ReplyResult& reply : all) {
    if (!reply) co_return std::unexpected(to_store_error(reply.error()));
    const json::Value* const found = reply->body.find("Item");
    if (found == nullptr) continue;
    if (auto record = listed_in(Item::parse(*found))) records.push_back(std::move(*record));
  }
  co_return records;
}

Task<ScanQueries::Rows> ScanQueries::list_of_index(List verb, char list, StoreTime now) {
  auto asking = ids_in(list);
  const auto ids = co_await std::move(asking);
  if (!ids) co_return std::unexpected(ids.error());
  std::vector<Record> found;
  auto at = verb.after ? std::ranges::upper_bound(*ids, *verb.after) : ids->begin();
  while (at != ids->end() && found.size() < verb.limit) {
    const auto rest = static_cast<std::size_t>(ids->end() - at);
    const auto end = at + static_cast<std::ptrdiff_t>(std::min(rest, limits::list_slice_rows));
    auto reading = read(std::vector<RecordId>(at, end));
    auto records = co_await std::move(reading);
    if (!records) co_return std::unexpected(records.error());
    at = end;
    for (Record& one : *records) {
      auto record = transitions::view(without_bodies(std::move(one)), now);
      if (!record || !is_listed(verb, *record)) continue;
      found.push_back(std::move(*record));
      if (found.size() == verb.limit) break;
    }
  }
  co_return found;
}

std::string ScanQueries::bucket_query(std::size_t bucket, const std::optional<RecordId>& after,
                                      std::size_t limit, const std::string& from) const {
  Query query(client_.table());
  query.flag("ConsistentRead", true);
  query.limit(limit);
  query.project("#s, #r");
  query.name("#p", attribute::partition).name("#s", attribute::sort).name("#r", attribute::row);
  query.value(":p", record_partition(bucket));
  if (after && after->bytes[0] == bucket) {
    query.value(":s", Bytes{std::string(bytes_of(*after))}).where("#p = :p AND #s > :s");
  } else {
    query.where("#p = :p");
  }
  query.from(from);
  return query.finish().body;
}

// Several buckets at once, and more of them the fewer records they have: an empty table takes few
// round trips, and a full one reads hardly more than it returns.
Task<ScanQueries::Rows> ScanQueries::list_of_table(List verb, StoreTime now) {
  std::vector<Record> found;
  std::size_t bucket = verb.after ? verb.after->bytes[0] : 0;
  std::size_t width = 1;
  while (bucket < bucket_count && found.size() < verb.limit) {
    const std::size_t end = std::min(bucket + width, bucket_count);
    std::vector<Question> questions;
    for (std::size_t i = bucket; i < end; ++i) {
      questions.push_back({"Query", bucket_query(i, verb.after, limits::list_slice_rows, {})});
    }
    auto asking = client_.ask_all(std::move(questions));
    const auto all = co_await std::move(asking);
    for (std::size_t i = 0; i < all.size() && found.size() < verb.limit; ++i) {
      ReplyResult reply = all[i];
      for (;;) {
        if (!reply) co_return std::unexpected(to_store_error(reply.error()));
        const Page page = parse_page(*reply);
        for (const Item& item : page.items) {
          auto record = listed_in(item);
          if (record) record = transitions::view(without_bodies(std::move(*record)), now);
          if (!record || !is_listed(verb, *record) || found.size() == verb.limit) continue;
          found.push_back(std::move(*record));
        }
        if (page.next.empty() || found.size() == verb.limit) break;
        Task<ReplyResult> going_on = client_.ask(
            {"Query", bucket_query(bucket + i, verb.after, limits::list_slice_rows, page.next)});
        reply = co_await std::move(going_on);
      }
    }
    bucket = end;
    width = std::min(2 * width, limits::dynamodb_questions_at_once);
  }
  co_return found;
}

Task<std::expected<std::vector<Record>, StoreError>> ScanQueries::list(List verb, StoreTime now) {
  const auto list = short_list_of(verb.state);
  Task<Rows> listing =
      list ? list_of_index(std::move(verb), *list, now) : list_of_table(std::move(verb), now);
  co_return co_await std::move(listing);
}

Task<std::expected<std::optional<StoreTime>, StoreError>> ScanQueries::oldest_unknown() {
  const StoreTime any{Millis(never_due - 1)};
  auto asking = due(std::string(1, list_of(State::unknown)), any, 1);
  const auto found = co_await std::move(asking);
  if (!found) co_return std::unexpected(found.error());
  co_return found->empty() ? std::nullopt : std::optional(found->front().at);
}

Task<std::expected<std::uint64_t, StoreError>> ScanQueries::count(State state) {
  const auto query_of = [&](std::size_t part, const std::string& from) {
    Query query(client_.table());
    query.member("IndexName", due_index).member("Select", "COUNT");
    query.name("#l", attribute::due)
        .value(":l", list_part(list_of(state), part))
        .where("#l = :l")
        .from(from);
    return query.finish();
  };
  std::vector<Question> questions;
  questions.reserve(list_parts);
  for (std::size_t part = 0; part < list_parts; ++part) questions.push_back(query_of(part, {}));
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  std::uint64_t count = 0;
  for (std::size_t part = 0; part < all.size(); ++part) {
    ReplyResult reply = all[part];
    for (;;) {
      if (!reply) co_return std::unexpected(to_store_error(reply.error()));
      const Page page = parse_page(*reply);
      count += page.count;
      if (page.next.empty()) break;
      Task<ReplyResult> going_on = client_.ask(query_of(part, page.next));
      reply = co_await std::move(going_on);
    }
  }
  co_return count;
}

Task<std::expected<Holdings, NoReply>> ScanQueries::survey(
    IdentitySteps::Beat beat, std::function<std::optional<StoreTime>()> now) {
  Holdings holdings;
  for (std::size_t first = 0; first < bucket_count; first += limits::dynamodb_questions_at_once) {
    std::vector<Question> questions;
    const std::size_t end = std::min(first + limits::dynamodb_questions_at_once, bucket_count);
    for (std::size_t i = first; i < end; ++i) {
      questions.push_back({"Query", bucket_query(i, {}, limits::dynamodb_survey_rows, {})});
    }
    auto asking = client_.ask_all(std::move(questions));
    const auto all = co_await std::move(asking);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ReplyResult reply = all[i];
      for (;;) {
        if (!reply) co_return std::unexpected(reply.error());
        const Page page = parse_page(*reply);
        const auto time = now();
        for (const Item& item : page.items) {
          if (!item.has(attribute::row)) continue;
          const auto record = record_in(item);
          if (!record) holdings.census.complete = false;
          if (!record || (time && !transitions::is_live(*record, *time))) continue;
          holdings.census.empty = false;
          holdings.census.generations.insert(record->generation);
          holdings.operations.insert(record->operation);
        }
        Task<bool> beating = beat();
        const bool may_go_on = co_await std::move(beating);
        if (!may_go_on) {
          co_return std::unexpected(
              NoReply{StoreError::Code::unavailable,
                      "another node took over the change of the store's identity"});
        }
        if (page.next.empty()) break;
        Task<ReplyResult> going_on = client_.ask(
            {"Query", bucket_query(first + i, {}, limits::dynamodb_survey_rows, page.next)});
        reply = co_await std::move(going_on);
      }
    }
  }
  if (!holdings.census.complete) holdings.census.empty = false;
  co_return holdings;
}

Task<std::optional<std::vector<std::string>>> ScanQueries::versions(std::vector<RecordId> ids) {
  std::vector<Question> questions;
  questions.reserve(ids.size());
  for (const RecordId& id : ids) questions.push_back(client_.reading(record_key(id)));
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  std::vector<std::string> found;
  for (const ReplyResult& reply : all) {
    if (!reply) co_return std::nullopt;
    const json::Value* const item = reply->body.find("Item");
    found.emplace_back(item == nullptr ? std::string()
                                       : std::string(Item::parse(*item).bytes(attribute::version)));
  }
  co_return found;
}

}  // namespace idem::dynamodb
