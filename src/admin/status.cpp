#include "admin/status.hpp"

#include "loop/store_link.hpp"

#include <idem/worker_limits.hpp>

namespace idem::admin {
namespace {

// A sweeper runs every second, and later only with a backlog.
constexpr Millis sweep_delay_max = std::chrono::minutes(1);

/// Counts one record.
void count(const AdminParts& parts, const Record& record, StoreTime now, Status::Records& into) {
  if (record.is_contested) ++into.contested;
  if (record.state == State::unknown) {
    // Without a plan after the end of its lease: due at once if it has a provider.
    const bool is_left = record.reconcile_attempts > 0 || parts.provider_of(record).empty();
    if (!record.reconcile_after && is_left) ++into.for_people;
  } else if (record.state == State::in_progress && record.locked_until + sweep_delay_max < now) {
    ++into.leases_overdue;
  }
}

}  // namespace

Task<void> count_unsettled(const AdminParts& parts, Status& into) {
  Status::Records records;
  for (const State state : {State::unknown, State::in_progress, State::completed}) {
    std::size_t seen = 0;
    List page{.state = state, .limit = limits::list_page_max};
    for (;;) {
      StoreCall listing = page;
      auto asking_for_page = ask_store(parts.loop, parts.store, listing);
      const auto listed = co_await asking_for_page;
      if (!listed) {
        into.store_error = listed.error().detail;
        co_return;
      }
      const auto& found = std::get<std::vector<Record>>(*listed);
      for (const Record& record : found) count(parts, record, into.census->now, records);
      seen += found.size();
      if (found.size() < limits::list_page_max) break;
      if (seen >= limits::status_records_max) {
        (state == State::completed ? records.seen_all_completed : records.seen_all) = false;
        break;
      }
      page.after = found.back().id;
    }
  }
  into.records = records;
}

Task<void> read_restore(const AdminParts& parts, Status& into) {
  StoreCall call =
      ReadLines{.journal = std::string(restores_journal), .limit = limits::journal_read_lines_max};
  auto asking = ask_store(parts.loop, parts.store, call);
  const auto read = co_await asking;
  if (read) into.restored = last_restore(std::get<ReadLines::Reply>(*read).lines);
}

}  // namespace idem::admin
