#include "store/redis/scan_queries.hpp"

#include "core/transitions/record_table.hpp"
#include "core/transitions/transitions.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <cstdlib>

namespace idem::redis {
namespace {

std::string key_of(const Names& names, std::size_t bucket, std::string_view set) {
  return names.bucket(bucket).tag + std::string(set);
}
std::string key_of(const Names& names, char kind, const RecordId& id) {
  return names.of(id).tag + kind + std::string(bytes_of(id));
}

StoreTime moment_of_score(const std::string& place) {
  return StoreTime(Millis(static_cast<std::int64_t>(std::strtod(place.c_str(), nullptr))));
}

/// The sets that may hold records of this state.
std::vector<std::string_view> sets_of(std::optional<State> state) {
  if (!state) return {sweep_set, reap_set, unknown_set};
  switch (*state) {
    case State::pending:
    case State::in_progress:
      return {sweep_set};
    case State::unknown:
      return {unknown_set};
    case State::completed:
    case State::failed_retryable:
    case State::expired:
      return {reap_set};
  }
  return {};
}

}  // namespace

Task<std::expected<std::vector<EvidenceEntry>, StoreError>> ScanQueries::evidence(RecordId id) {
  Task<QuestionResult> asking =
      client_.ask({names_.of(id).slot, command({"LRANGE", key_of(names_, 'e', id), "0", "-1"})});
  const QuestionResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(to_store_error(reply.error()));
  std::vector<EvidenceEntry> log;
  for (const Reply& line : reply->items) {
    auto entry = parse_evidence_value(id, line.text);
    if (!entry) co_return std::unexpected(damaged_record(id, entry.error()));
    log.push_back(std::move(*entry));
  }
  co_return log;
}

Task<DueResult> ScanQueries::due(std::string_view set, StoreTime now, std::size_t limit) {
  const std::string until = std::to_string(now.time_since_epoch().count());
  const std::string most = std::to_string(limit);
  std::vector<Question> questions;
  for (std::size_t i = 0; i < bucket_count; ++i) {
    questions.push_back(
        {names_.bucket(i).slot, command({"ZRANGEBYSCORE", key_of(names_, i, set), "-inf", until,
                                         "WITHSCORES", "LIMIT", "0", most})});
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  std::vector<Due> found;
  for (const QuestionResult& reply : all) {
    if (!reply) co_return std::unexpected(to_store_error(reply.error()));
    for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
      const auto id = to_id(reply->items[i].text);
      if (id) found.push_back({moment_of_score(reply->items[i + 1].text), *id});
    }
  }
  const auto by_age = [](const Due& one) { return std::pair(one.at, one.id); };
  std::ranges::sort(found, {}, by_age);
  if (found.size() > limit) found.resize(limit);
  co_return found;
}

Task<void> ScanQueries::hide(std::string_view set, RecordId id) {
  const std::string key = key_of(names_, bucket_of(id), set);
  Task<QuestionResult> asking = client_.ask(
      {names_.of(id).slot, command({"ZADD", key, "XX", "+inf", std::string(bytes_of(id))})});
  (void)co_await std::move(asking);
}

Task<std::expected<ScanQueries::Ids, StoreError>> ScanQueries::ids_in(std::size_t bucket,
                                                                      std::optional<State> state) {
  if (state == State::failed_retryable) {
    // Their set also holds all records with an answer; most buckets have none of this state.
    Task<QuestionResult> counting =
        client_.ask({names_.bucket(bucket).slot,
                     command({"HGET", key_of(names_, bucket, "meta"), counter_of(*state)})});
    const QuestionResult counted = co_await std::move(counting);
    if (!counted) co_return std::unexpected(to_store_error(counted.error()));
    if (counted->text.empty() || counted->text == "0") co_return Ids{};
  }
  std::vector<Question> questions;
  for (const auto set : sets_of(state)) {
    questions.push_back(
        {names_.bucket(bucket).slot, command({"ZRANGE", key_of(names_, bucket, set), "0", "-1"})});
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  Ids ids;
  for (const QuestionResult& reply : all) {
    if (!reply) co_return std::unexpected(to_store_error(reply.error()));
    for (const Reply& name : reply->items) {
      if (const auto id = to_id(name.text)) ids.push_back(*id);
    }
  }
  // A record that moved to another set meanwhile may be in both.
  std::ranges::sort(ids);
  const auto twice = std::ranges::unique(ids);
  ids.erase(twice.begin(), twice.end());
  co_return ids;
}

Task<std::expected<std::vector<Record>, StoreError>> ScanQueries::read(
    std::span<const RecordId> ids) {
  std::vector<Question> questions;
  for (const RecordId& id : ids) {
    questions.push_back({names_.of(id).slot, command({"GET", key_of(names_, 'r', id)})});
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  std::vector<Record> records;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!all[i]) co_return std::unexpected(to_store_error(all[i].error()));
    if (all[i]->kind != Reply::Kind::text) {
      // Reaped since its id was read, or evicted: who reads it learns which.
      records.push_back(damaged_row(ids[i]));
      continue;
    }
    StoredRow row = parse_row(ids[i], all[i]->text);
    if (!row.record) {
      records.push_back(damaged_row(ids[i]));
      continue;
    }
    row.record->response = marked_answer(row.mark);
    records.push_back(std::move(*row.record));
  }
  co_return records;
}

// Each record is in one of three sets, and the bucket counts those of each state (commit.lua). The
// two are read one after the other, so a difference counts once it stays.
Task<std::expected<bool, StoreError>> ScanQueries::has_lost_records(std::size_t bucket) {
  constexpr int readings_max = 5;
  for (int reading = 0; reading < readings_max; ++reading) {
    std::string counting;
    CommandWriter words(counting, 2 + 6);
    words.add("HMGET").add(key_of(names_, bucket, "meta"));
    for (std::uint8_t state = 1; state <= 6; ++state) {
      words.add(counter_of(static_cast<State>(state)));
    }
    std::vector<Question> questions{{names_.bucket(bucket).slot, std::move(counting)}};
    for (const auto set : sets_of(std::nullopt)) {
      questions.push_back(
          {names_.bucket(bucket).slot, command({"ZCARD", key_of(names_, bucket, set)})});
    }
    auto asking = client_.ask_all(std::move(questions));
    const auto all = co_await std::move(asking);
    std::int64_t counted = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i]) co_return std::unexpected(to_store_error(all[i].error()));
      if (i > 0) counted -= all[i]->number;
      for (const Reply& number : all[i]->items) {
        counted += std::strtoll(number.text.c_str(), nullptr, 10);
      }
    }
    if (counted == 0) co_return false;
  }
  co_return true;
}

Task<std::expected<std::vector<Record>, StoreError>> ScanQueries::list(List verb, StoreTime now) {
  std::vector<Record> found;
  const std::size_t first = verb.after ? bucket_of(*verb.after) : 0;
  for (std::size_t bucket = first; bucket < bucket_count && found.size() < verb.limit; ++bucket) {
    auto asking = ids_in(bucket, verb.state);
    const auto ids = co_await std::move(asking);
    if (!ids) co_return std::unexpected(ids.error());
    if (verb.damaged) {
      auto counting = has_lost_records(bucket);
      const auto has_lost = co_await std::move(counting);
      if (!has_lost) co_return std::unexpected(has_lost.error());
      if (*has_lost) {
        co_return std::unexpected(
            StoreError{StoreError::Code::damaged,
                       "the store has lost records of the bucket " + names_.bucket(bucket).tag});
      }
    }
    const auto from = verb.after ? std::ranges::upper_bound(*ids, *verb.after) : ids->begin();
    std::span<const RecordId> rest(from, ids->end());
    while (!rest.empty() && found.size() < verb.limit) {
      const auto slice = rest.first(std::min(rest.size(), limits::list_slice_rows));
      rest = rest.subspan(slice.size());
      auto reading = read(slice);
      auto records = co_await std::move(reading);
      if (!records) co_return std::unexpected(records.error());
      for (Record& one : *records) {
        auto record = transitions::view(without_bodies(std::move(one)), now);
        if (!record || !is_listed(verb, *record)) continue;
        found.push_back(std::move(*record));
        if (found.size() == verb.limit) break;
      }
    }
  }
  co_return found;
}

Task<std::expected<Census, StoreError>> ScanQueries::count() {
  std::vector<Question> questions;
  for (std::size_t i = 0; i < bucket_count; ++i) {
    std::string counting;
    CommandWriter words(counting, 2 + 6);
    words.add("HMGET").add(key_of(names_, i, "meta"));
    for (std::uint8_t state = 1; state <= 6; ++state) {
      words.add(counter_of(static_cast<State>(state)));
    }
    questions.push_back({names_.bucket(i).slot, std::move(counting)});
    // Of damaged ones, which have no moment, there is no age.
    questions.push_back(
        {names_.bucket(i).slot, command({"ZRANGEBYSCORE", key_of(names_, i, unknown_set), "-inf",
                                         "(+inf", "WITHSCORES", "LIMIT", "0", "1"})});
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  Census census;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) co_return std::unexpected(to_store_error(all[i].error()));
    const Reply& reply = *all[i];
    if (i % 2 == 0) {
      for (std::size_t state = 1; state <= 6; ++state) {
        const std::string& digits = reply.at(state - 1).text;
        census.by_state[state] += std::strtoull(digits.c_str(), nullptr, 10);
      }
    } else if (reply.items.size() == 2) {
      const StoreTime since = moment_of_score(reply.at(1).text);
      if (!census.oldest_unknown || since < *census.oldest_unknown) census.oldest_unknown = since;
    }
  }
  co_return census;
}

Task<std::optional<std::vector<std::string>>> ScanQueries::versions(std::vector<RecordId> ids) {
  std::vector<Question> questions;
  for (const RecordId& id : ids) {
    questions.push_back(
        {names_.of(id).slot, command({"GETRANGE", key_of(names_, 'r', id), "0", "15"})});
  }
  auto asking = client_.ask_all(std::move(questions));
  auto all = co_await std::move(asking);
  std::vector<std::string> found;
  for (QuestionResult& reply : all) {
    if (!reply) co_return std::nullopt;
    found.push_back(std::move(reply->text));
  }
  co_return found;
}

}  // namespace idem::redis
