#include "workers/forgetter.hpp"

#include "core/record/find_journals.hpp"

#include <idem/search_limits.hpp>
#include <idem/store_wait.hpp>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace idem::workers {
namespace {

template <class Verb>
using Replies = std::expected<std::vector<std::optional<typename Verb::Reply>>, StoreError>;

/// Asks a few at a time, which a store commits together, and waits for all. None: what the store
/// has is damaged, which only this one is about. The first other error counts.
template <class Verb>
Replies<Verb> ask_all(Store& store, std::vector<Verb> verbs) {
  using Result = std::expected<typename Verb::Reply, StoreError>;
  std::vector<std::optional<typename Verb::Reply>> replies;
  for (std::size_t from = 0; from < verbs.size(); from += limits::search_writes_max) {
    const std::size_t to = std::min(from + limits::search_writes_max, verbs.size());
    std::vector<std::future<Result>> asked;
    for (std::size_t i = from; i < to; ++i) {
      auto promise = std::make_shared<std::promise<Result>>();
      asked.push_back(promise->get_future());
      ask(store, std::move(verbs[i]),
          [promise](Result result) { promise->set_value(std::move(result)); });
    }
    about_to_wait();
    std::optional<StoreError> failure;
    for (auto& one : asked) {
      Result result = one.get();
      if (result) {
        replies.emplace_back(std::move(*result));
      } else if (result.error().code == StoreError::Code::damaged) {
        replies.emplace_back(std::nullopt);
      } else if (!failure) {
        failure = std::move(result.error());
      }
    }
    if (failure) return std::unexpected(std::move(*failure));
  }
  return replies;
}

/// A journal with what it says.
struct Ended {
  std::string name;
  std::uint64_t last = 0;
  std::vector<FindLine> lines{};
};

/// Journals of days before `today`, in the order of their names.
std::vector<std::string> names_of(const std::vector<JournalSummary>& listed,
                                  const std::string& today) {
  std::vector<std::string> names;
  for (const auto& one : listed) {
    const auto day = day_of_find_journal(one.name);
    if (!day.empty() && day < today) names.push_back(one.name);
  }
  return names;
}

std::expected<std::vector<Ended>, StoreError> read_all(Store& store,
                                                       const std::vector<std::string>& names) {
  std::vector<ReadLines> verbs;
  for (const auto& name : names) {
    verbs.push_back({name, 0, limits::search_lines_max + 1});
  }
  const auto read = ask_all(store, std::move(verbs));
  if (!read) return std::unexpected(read.error());
  std::vector<Ended> ended;
  for (std::size_t i = 0; i < names.size(); ++i) {
    // It stays, and nothing behind it waits for it.
    if (!(*read)[i]) continue;
    Ended& one = ended.emplace_back(Ended{names[i], (*read)[i]->last});
    for (const auto& line : (*read)[i]->lines) {
      // What does not open says nothing about any record.
      const auto parsed = line.is_damaged ? std::nullopt : FindLine::parse(line.bytes);
      if (parsed) one.lines.push_back(*parsed);
    }
  }
  return ended;
}

/// The day on which this record is forgotten as far as that is known, today at the earliest.
std::string day_of(const Record& record, StoreTime now) {
  const auto later = now + record.retention + record.tombstone;
  const bool is_ended = record.tombstone_until && *record.tombstone_until != StoreTime{};
  const StoreTime until = is_ended ? *record.tombstone_until : later;
  return find_day(std::max(until, now));
}

/// Appends a line to a journal that others may write, too.
std::expected<void, StoreError> move_line(Store& store, const std::string& journal,
                                          const FindLine& line) {
  std::uint64_t behind = 0;
  for (int tries = 0; tries < limits::search_tries_max; ++tries) {
    const auto appended = ask_and_wait(store, AppendLine{journal, behind, line.text()});
    if (!appended) return std::unexpected(appended.error());
    if (appended->appended) return {};
    const auto read = ask_and_wait(store, ReadLines{journal, 0, limits::search_lines_max + 1});
    if (!read) return std::unexpected(read.error());
    const bool is_there =
        std::ranges::find(read->lines, line.text(), &JournalLine::bytes) != read->lines.end();
    if (is_there || read->last > limits::search_lines_max) return {};
    behind = read->last;
  }
  return std::unexpected(
      StoreError{StoreError::Code::unavailable, "others keep appending to " + journal});
}

std::expected<void, StoreError> move_what_stays(Store& store, const std::vector<Ended>& ended,
                                                StoreTime now) {
  std::set<RecordId> ids;
  for (const auto& journal : ended) {
    for (const auto& line : journal.lines) ids.insert(line.id);
  }
  std::vector<Find> verbs;
  for (const auto& id : ids) verbs.push_back({id});
  const auto found = ask_all(store, std::move(verbs));
  if (!found) return std::unexpected(found.error());
  std::map<RecordId, std::string> days;
  std::size_t at = 0;
  for (const auto& id : ids) {
    const auto& record = (*found)[at++];
    // Nobody knows until when a damaged one lies there.
    if (!record) days.emplace(id, find_day(now + std::chrono::hours(24)));
    if (record && *record) days.emplace(id, day_of(**record, now));
  }
  for (const auto& journal : ended) {
    const std::string digest = journal.name.substr(journal.name.rfind('/'));
    for (const auto& line : journal.lines) {
      const auto day = days.find(line.id);
      if (day == days.end()) continue;
      const auto moved = move_line(store, std::string(find_journals) + day->second + digest, line);
      if (!moved) return moved;
    }
  }
  return {};
}

std::expected<bool, StoreError> forget(Store& store, std::size_t most) {
  const auto clock = ask_and_wait(store, ReadLines{std::string(find_notes), 0, 1});
  if (!clock) return std::unexpected(clock.error());
  // A store in which nothing was ever indexed has no notes.
  if (clock->last == 0) return false;
  std::vector<std::string> names;
  std::expected<std::vector<Ended>, StoreError> ended;
  // Behind those that cannot be read.
  do {
    const auto listed = ask_and_wait(
        store, ListJournals{std::string(find_journals), names.empty() ? "" : names.back(), most});
    if (!listed) return std::unexpected(listed.error());
    names = names_of(*listed, find_day(clock->now));
    if (names.empty()) return false;
    ended = read_all(store, names);
    if (!ended) return std::unexpected(ended.error());
  } while (ended->empty());
  if (const auto moved = move_what_stays(store, *ended, clock->now); !moved) {
    return std::unexpected(moved.error());
  }
  // Of one that has got a line meanwhile nothing is dropped: the next slice reads it again.
  std::vector<DropJournal> drops;
  for (const auto& one : *ended) drops.push_back({one.name, one.last});
  const auto dropped = ask_all(store, std::move(drops));
  if (!dropped) return std::unexpected(dropped.error());
  return names.size() == most;
}

}  // namespace

std::expected<bool, StoreError> forget_once(Store& store, metrics::Shard& shard, std::size_t most) {
  auto forgotten = forget(store, most);
  // A service's role of the database may not see journals, and then nobody searches by it.
  if (!forgotten && forgotten.error().code == StoreError::Code::refused) return false;
  if (!forgotten) shard.store_errors.add();
  return forgotten;
}

}  // namespace idem::workers
