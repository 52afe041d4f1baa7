#include "store/redis/work_lists.hpp"

#include "core/record/stored_record_codec.hpp"
#include "store/redis/scripts.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace idem::redis {
namespace {

/// Keys of one page. Few of them are of the buckets that differ.
constexpr std::size_t page_keys = 8 * limits::list_slice_rows;

/// For a pattern of SCAN.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("*?[]^-\\").contains(c)) out += '\\';
    out += c;
  }
  return out;
}

/// The keys of all records: "{PREFIX:xx}r" and the id.
std::string pattern_of_records(const Names& names) {
  const std::string& first = names.bucket(0).tag;
  return escaped(std::string_view(first).substr(0, first.size() - 3)) + "[0-9a-f][0-9a-f]}r*";
}

std::optional<RecordId> record_of(const Names& names, std::string_view key) {
  const std::size_t before = names.bucket(0).tag.size() + 1;
  if (key.size() <= before) return std::nullopt;
  const auto id = to_id(key.substr(before));
  return id && key.starts_with(names.of(*id).tag + 'r') ? id : std::nullopt;
}

struct Places {
  Listing listing;
  std::string pending;
};

/// For a record that cannot be read: the sets of its state, at their ends, where nobody meets it.
Places places_of_damaged(std::string_view row) {
  constexpr std::size_t state_at = 19;  // As in commit.lua.
  Record record;
  if (row.size() > state_at) record.state = static_cast<State>(row[state_at]);
  return {{listing_of(record).set, "+inf"}, record.state == State::pending ? "+inf" : ""};
}

Places places_of(const RecordId& id, std::string_view row) {
  const StoredRow read = parse_row(id, row);
  if (!read.record) return places_of_damaged(row);
  const Record& record = *read.record;
  const bool waits = record.state == State::pending;
  return {listing_of(record),
          waits ? std::to_string(record.locked_until.time_since_epoch().count()) : ""};
}

}  // namespace

WorkLists::WorkLists(RetryingClient& client, const Names& names, bool is_cluster,
                     std::function<void(const std::string&)> warn)
    : client_(client), names_(names), is_cluster_(is_cluster), warn_(std::move(warn)) {}

Task<void> WorkLists::turn() {
  if (is_busy_) co_return;
  is_busy_ = true;
  // A bucket that joined in the middle of a reading would miss the records before it.
  if (cursor_.empty()) {
    Task<void> comparing = compare_next();
    co_await std::move(comparing);
  }
  if (!differing_.empty()) {
    Task<void> reading = read_on();
    co_await std::move(reading);
  }
  is_busy_ = false;
}

// A bucket whose server does not answer counts as sound for now.
Task<void> WorkLists::compare(std::vector<std::size_t> buckets,
                              std::map<std::size_t, Short>& differing) {
  std::vector<Question> questions;
  for (const std::size_t bucket : buckets) {
    Question question{names_.bucket(bucket).slot, {}};
    scripts().compare.call(question.command, names_.bucket(bucket).tag, 0);
    questions.push_back(std::move(question));
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (!all[i] || all[i]->at(0).text != "differs") continue;
    const Reply& by = *all[i];
    differing[buckets[i]] =
        fmt::format("{} {}, {} {}, {} {}, {} {}", sweep_set, by.at(2).number, reap_set,
                    by.at(3).number, unknown_set, by.at(4).number, pending_set, by.at(5).number);
  }
}

Task<void> WorkLists::compare_next() {
  std::vector<std::size_t> buckets;
  for (std::size_t i = 0; i < limits::redis_compared_buckets; ++i) {
    buckets.push_back(next_bucket_);
    next_bucket_ = (next_bucket_ + 1) % bucket_count;
  }
  std::map<std::size_t, Short> found;
  Task<void> comparing = compare(std::move(buckets), found);
  co_await std::move(comparing);
  for (auto& [bucket, by] : found) {
    const auto known = given_up_.find(bucket);
    const bool is_known = known != given_up_.end() && known->second.why == by &&
                          MonotonicClock::now() < known->second.until;
    if (!is_known) differing_[bucket] = std::move(by);
  }
}

Task<void> WorkLists::read_on() {
  for (int page = 0; page < limits::redis_relist_pages; ++page) {
    Task<bool> reading = read_page();
    const bool is_last = co_await std::move(reading);
    if (!is_last) continue;
    Task<void> ending = end_reading();
    co_await std::move(ending);
    co_return;
  }
}

/// True: there is no further page, or no answer.
Task<bool> WorkLists::read_page() {
  const unsigned slot = names_.bucket(differing_.begin()->first).slot;
  const std::string from = cursor_.empty() ? "0" : cursor_;
  const std::string pattern = pattern_of_records(names_);
  const std::string count = std::to_string(page_keys);
  Task<QuestionResult> asking =
      client_.ask({slot, command({"SCAN", from, "MATCH", pattern, "COUNT", count})});
  const QuestionResult reply = co_await std::move(asking);
  if (!reply) {
    cursor_.clear();
    differing_.clear();  // The next comparison finds them again.
    co_return true;
  }
  cursor_ = reply->at(0).text;
  std::vector<RecordId> ids;
  for (const Reply& key : reply->at(1).items) {
    const auto id = record_of(names_, key.text);
    if (id && differing_.contains(bucket_of(*id))) ids.push_back(*id);
  }
  Task<void> relisting = relist(std::move(ids));
  co_await std::move(relisting);
  co_return cursor_ == "0";
}

Task<void> WorkLists::relist(std::vector<RecordId> ids) {
  std::vector<Question> reads;
  for (const RecordId& id : ids) {
    const std::string key = names_.of(id).tag + 'r' + std::string(bytes_of(id));
    reads.push_back({names_.of(id).slot, command({"GET", key})});
  }
  auto reading = client_.ask_all(std::move(reads));
  const auto rows = co_await std::move(reading);
  std::vector<Question> writes;
  std::vector<RecordId> written;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!rows[i] || rows[i]->kind != Reply::Kind::text) continue;
    const Places places = places_of(ids[i], rows[i]->text);
    Question question{names_.of(ids[i]).slot, {}};
    scripts()
        .relist.call(question.command, names_.of(ids[i]).tag, 5)
        .add(bytes_of(ids[i]))
        .add(std::string_view(rows[i]->text).substr(0, std::tuple_size_v<Version>))
        .add(places.listing.set)
        .add(places.listing.place)
        .add(places.pending);
    writes.push_back(std::move(question));
    written.push_back(ids[i]);
  }
  auto asking = client_.ask_all(std::move(writes));
  const auto all = co_await std::move(asking);
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (all[i] && all[i]->at(2).number > 0) ++put_back_[bucket_of(written[i])];
  }
}

// In a cluster the reading was of one server, so that it says something of the first bucket only;
// the comparison finds the others again.
Task<void> WorkLists::end_reading() {
  std::vector<std::size_t> read;
  for (const auto& [bucket, by] : differing_) {
    if (read.empty() || !is_cluster_) read.push_back(bucket);
  }
  const bool was_read = !cursor_.empty();
  std::map<std::size_t, Short> still;
  Task<void> comparing = compare(read, still);
  co_await std::move(comparing);
  for (const std::size_t bucket : read) {
    if (!was_read) break;
    const std::string found = fmt::format(
        "the server had lost lists of records in {}: {} records were put back into them",
        names_.bucket(bucket).tag, put_back_[bucket]);
    const auto short_by = still.find(bucket);
    if (short_by == still.end()) {
      given_up_.erase(bucket);
      if (put_back_[bucket] > 0 && warn_) warn_(found);
      continue;
    }
    given_up_[bucket] = {short_by->second,
                         MonotonicClock::now() + limits::redis_relist_again_after};
    if (warn_) warn_(found + "; records themselves are lost (" + short_by->second + ")");
  }
  put_back_.clear();
  differing_.clear();
  cursor_.clear();
}

}  // namespace idem::redis
