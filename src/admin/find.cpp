#include "admin/find.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/hex.hpp"
#include "core/record/find_journals.hpp"
#include "core/trace/trace_context.hpp"
#include "loop/store_link.hpp"

#include <idem/search_limits.hpp>

#include <algorithm>
#include <vector>

namespace idem::admin {
namespace {

/// The value as it is, and the id of a trace that it names.
std::set<std::string> spellings_of(const std::string& value) {
  std::set<std::string> spellings{value};
  const std::string lower = lower_case(value);
  if (from_hex<sizeof(TraceId::bytes)>(lower)) spellings.insert(lower);
  if (const auto parent = parse_traceparent(lower)) spellings.insert(to_hex(parent->trace.bytes));
  return spellings;
}

/// Under each secret that may have made them.
std::set<FindName> names_of(const std::string& value, const Identity& identity) {
  std::set<FindName> names;
  for (const auto& spelling : spellings_of(value)) {
    names.insert(find_name(identity.secret, spelling));
    for (const Secret& older : identity.older) names.insert(find_name(older, spelling));
  }
  return names;
}

class Search {
 public:
  Search(Loop& loop, Store& store) : loop_(loop), store_(store) {}

  Task<std::expected<FoundRecords, StoreError>> run(const std::string& value) {
    auto noting = read_notes();
    const auto noted = co_await noting;
    if (!noted) co_return std::unexpected(noted.error());
    const auto names = names_of(value, store_.identity());
    std::string after;
    for (;;) {
      auto listing = next_day(after);
      const auto day = co_await listing;
      if (!day) co_return std::unexpected(day.error());
      if (day->empty()) break;
      if (found_.searched.days == limits::search_days_max) {
        found_.searched.has_more = true;
        break;
      }
      ++found_.searched.days;
      for (const FindName& name : names) {
        auto reading = read(find_journal(*day, name));
        const auto done = co_await reading;
        if (!done) co_return std::unexpected(done.error());
      }
      after = behind_find_day(*day);
    }
    co_return std::move(found_);
  }

 private:
  using Done = std::expected<void, StoreError>;

  /// The next day that has journals; empty: there is none.
  Task<std::expected<std::string, StoreError>> next_day(std::string after) {
    while (true) {
      StoreCall list = ListJournals{std::string(find_journals), after, 1};
      auto asking = ask_store(loop_, store_, list);
      const auto listed = co_await asking;
      if (!listed) co_return std::unexpected(listed.error());
      const auto& journals = std::get<std::vector<JournalSummary>>(*listed);
      if (journals.empty()) co_return std::string();
      std::string day(day_of_find_journal(journals.front().name));
      if (!day.empty()) co_return day;
      after = journals.front().name;  // Of a later version.
    }
  }

  Task<Done> read(std::string journal) {
    StoreCall call = ReadLines{journal, 0, limits::search_lines_max + 1};
    auto asking = ask_store(loop_, store_, call);
    const auto result = co_await asking;
    if (!result && result.error().code == StoreError::Code::damaged) {
      ++found_.searched.unreadable;
      co_return Done();
    }
    if (!result) co_return std::unexpected(result.error());
    const auto& reply = std::get<ReadLines::Reply>(*result);
    found_.searched.has_more = found_.searched.has_more || reply.last > limits::search_lines_max;
    for (const JournalLine& line : reply.lines) {
      const auto parsed = line.is_damaged ? std::nullopt : FindLine::parse(line.bytes);
      if (parsed) {
        found_.records[parsed->id].insert(parsed->found_by);
      } else {
        ++found_.searched.unreadable;
      }
    }
    co_return Done();
  }

  /// The last one, since when it counts, and whether there were others before.
  Task<Done> read_notes() {
    StoreCall first = ReadLines{std::string(find_notes), 0, 1};
    auto asking = ask_store(loop_, store_, first);
    const auto result = co_await asking;
    if (!result) co_return std::unexpected(result.error());
    const std::uint64_t last = std::get<ReadLines::Reply>(*result).last;
    if (last == 0) co_return Done();
    StoreCall call = ReadLines{std::string(find_notes), last - 1, 1};
    auto asking_last = ask_store(loop_, store_, call);
    const auto reply = co_await asking_last;
    if (!reply) co_return std::unexpected(reply.error());
    found_.searched.has_earlier_settings = last > 1;
    for (const JournalLine& line : std::get<ReadLines::Reply>(*reply).lines) {
      if (line.is_damaged) {
        ++found_.searched.unreadable;
        continue;
      }
      found_.searched.indexed = FindNote::parse(line.bytes);
      found_.searched.since = line.at;
    }
    co_return Done();
  }

  Loop& loop_;
  Store& store_;
  FoundRecords found_;
};

}  // namespace

Task<std::expected<FoundRecords, StoreError>> search(Loop& loop, Store& store,
                                                     const std::string& value) {
  Search search(loop, store);
  auto running = search.run(value);
  auto found = co_await running;
  co_return found;
}

}  // namespace idem::admin
