#include "admin/jobs/job_journals.hpp"

#include "loop/store_link.hpp"

#include <idem/fingerprint.hpp>
#include <idem/job_limits.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem::admin {
namespace {

using Code = StoreError::Code;

std::string journal_of(std::string_view id) { return std::string(job_journals) + std::string(id); }
std::string marker_of(std::string_view id) {
  return std::string(open_job_journals) + std::string(id);
}

}  // namespace

template <class Reply>
StoreTask<Reply> JobJournals::ask(StoreCall call) {
  auto asking = ask_store(loop_, store_, call);
  auto result = co_await asking;
  if (!result) co_return std::unexpected(std::move(result.error()));
  co_return std::get<Reply>(std::move(*result));
}

StoreTask<StoreTime> JobJournals::now() {
  auto asking = ask<Census>(Count{});
  const auto census = co_await asking;
  if (!census) co_return std::unexpected(census.error());
  co_return census->now;
}

void JobJournals::keep(const std::string& id, const std::shared_ptr<JobFold>& fold) {
  order_.remove(id);
  order_.push_front(id);
  kept_[id] = fold;
  // A running job is held by its coroutine: without its fold here it would be read anew, line by
  // line, at each look.
  const auto is_idle = [&](const std::string& one) { return kept_[one].use_count() == 1; };
  auto idle = static_cast<std::size_t>(std::ranges::count_if(order_, is_idle));
  for (auto at = order_.end(); idle > limits::jobs_kept_max && at != order_.begin();) {
    --at;
    if (!is_idle(*at)) continue;
    kept_.erase(*at);
    at = order_.erase(at);
    --idle;
  }
}

// ---- reading ----

/// False: the journal is gone, or has begun anew.
StoreTask<bool> JobJournals::catch_up(std::shared_ptr<JobFold> fold, std::string id) {
  for (;;) {
    // While this waits, an append may show `fold` lines that are newer than the reply.
    const std::uint64_t seen = fold->last();
    auto reading = read_lines(loop_, store_, journal_of(id), seen, limits::journal_read_lines_max);
    const auto page = co_await reading;
    if (!page) co_return std::unexpected(page.error());
    for (const JournalLine& line : page->lines) fold->see(line);
    fold->set_now(page->now);
    if (page->last < seen) co_return false;
    if (page->last <= fold->last() || page->lines.empty()) co_return true;
  }
}

StoreTask<std::shared_ptr<JobFold>> JobJournals::read(std::string id) {
  const auto found = kept_.find(id);
  const auto fold = found == kept_.end() ? std::make_shared<JobFold>() : found->second;
  auto reading = catch_up(fold, id);
  const auto is_there = co_await reading;
  if (!is_there) co_return std::unexpected(is_there.error());
  if (!*is_there || fold->last() == 0) {
    kept_.erase(id);
    order_.remove(id);
    co_return nullptr;
  }
  keep(id, fold);
  co_return fold;
}

StoreTask<std::shared_ptr<const JobFold>> JobJournals::summary(std::string id) {
  auto beginning = read_lines(loop_, store_, journal_of(id), 0, 1);
  const auto first = co_await beginning;
  if (!first) co_return std::unexpected(first.error());
  if (first->lines.empty()) co_return nullptr;
  auto ending = read_lines(loop_, store_, journal_of(id), first->last - 1, 1);
  const auto last = co_await ending;
  if (!last) co_return std::unexpected(last.error());
  const bool has_end = !last->lines.empty() && !last->lines.front().is_damaged;
  const auto line = has_end ? parse_job_line(last->lines.front().bytes) : std::nullopt;
  const auto parsed = parse_job_line(first->lines.front().bytes);
  const bool is_short = line && std::holds_alternative<JobEnd>(*line) && parsed &&
                        std::holds_alternative<JobDefinition>(*parsed) &&
                        !first->lines.front().is_damaged;
  if (is_short) {
    co_return std::make_shared<const JobFold>(
        JobFold::ended(first->lines.front(), std::get<JobDefinition>(*parsed), last->lines.front(),
                       std::get<JobEnd>(*line)));
  }
  auto reading = read(id);
  auto whole = co_await reading;
  if (!whole) co_return std::unexpected(whole.error());
  co_return std::shared_ptr<const JobFold>(std::move(*whole));
}

StoreTask<JobJournals::Listed> JobJournals::list(std::string after, std::size_t limit) {
  const std::string behind = after.empty() ? std::string() : journal_of(after);
  auto asking =
      ask<std::vector<JournalSummary>>(ListJournals{std::string(job_journals), behind, limit + 1});
  const auto found = co_await asking;
  if (!found) co_return std::unexpected(found.error());
  Listed listed;
  for (const JournalSummary& one : *found) {
    if (listed.ids.size() == limit) {
      listed.next = listed.ids.back();
      break;
    }
    listed.ids.push_back(one.name.substr(job_journals.size()));
  }
  co_return listed;
}

// ---- appending ----

StoreTask<bool> JobJournals::append(std::shared_ptr<JobFold> fold, std::string id,
                                    std::string line) {
  JournalLine appended;
  auto appending =
      append_line(loop_, store_, journal_of(id), fold->last(), std::move(line), appended);
  const auto done = co_await appending;
  if (!done) co_return std::unexpected(done.error());
  if (*done) fold->see(appended);
  if (*done) co_return true;
  auto reading = catch_up(fold, id);
  const auto caught_up = co_await reading;
  if (!caught_up) co_return std::unexpected(caught_up.error());
  co_return false;
}

// The marker comes first: a job that has begun is always found.
StoreTask<std::shared_ptr<JobFold>> JobJournals::begin(JobDefinition definition,
                                                       std::span<const JobTarget> targets) {
  const std::string id = definition.id;
  const MonotonicTime since = MonotonicClock::now();
  JournalLine marked;
  // No other's marker has these bytes, so that a lost reply does not take one for its own.
  auto marking =
      append_line(loop_, store_, marker_of(id), 0, "open " + to_hex(random_token().bytes), marked);
  const auto is_marked = co_await marking;
  if (!is_marked) co_return std::unexpected(is_marked.error());
  if (!*is_marked) {
    co_return std::unexpected(
        StoreError{Code::unavailable, "another process is writing this job down, or was"});
  }
  const auto fold = std::make_shared<JobFold>();
  std::vector<std::string> lines{write_line(definition)};
  for (auto rest = targets; !rest.empty();) {
    const auto part = rest.first(std::min(rest.size(), limits::job_targets_per_line));
    lines.push_back(write_line(part));
    rest = rest.subspan(part.size());
  }
  lines.push_back(write_line(JobBegin{}));
  for (std::string& line : lines) {
    // Others take it for abandoned soon.
    if (MonotonicClock::now() - since > limits::job_begin_max / 2) {
      co_return std::unexpected(StoreError{Code::unavailable, "the store was too slow for this"});
    }
    auto appending = append(fold, id, std::move(line));
    const auto appended = co_await appending;
    if (!appended) co_return std::unexpected(appended.error());
    if (!*appended) {
      co_return std::unexpected(
          StoreError{Code::unavailable, "the job was dropped before it began"});
    }
  }
  keep(id, fold);
  co_return fold;
}

// ---- open and dropped ones ----

StoreTask<std::vector<std::string>> JobJournals::open_jobs() {
  // More than may be open: some have ended, or never begin, and their markers are still there.
  auto asking = ask<std::vector<JournalSummary>>(
      ListJournals{std::string(open_job_journals), {}, limits::journal_read_lines_max});
  const auto found = co_await asking;
  if (!found) co_return std::unexpected(found.error());
  std::vector<std::string> ids;
  for (const JournalSummary& one : *found) ids.push_back(one.name.substr(open_job_journals.size()));
  co_return ids;
}

StoreTask<std::optional<Millis>> JobJournals::open_for(std::string id) {
  auto reading = read_lines(loop_, store_, marker_of(id), 0, 1);
  const auto page = co_await reading;
  if (!page) co_return std::unexpected(page.error());
  if (page->lines.empty()) co_return std::optional<Millis>();
  co_return page->now - page->lines.front().at;
}

StoreTask<bool> JobJournals::close(std::string id) {
  auto asking = ask<DropJournal::Reply>(DropJournal{marker_of(id), 1});
  const auto dropped = co_await asking;
  if (!dropped) co_return std::unexpected(dropped.error());
  co_return dropped->dropped;
}

StoreTask<bool> JobJournals::drop(std::string id) {
  auto reading = summary(id);
  const auto fold = co_await reading;
  if (!fold) co_return std::unexpected(fold.error());
  if (*fold == nullptr) co_return true;
  // What is behind a damaged line may say that it has begun, and another process may have the key
  // to it.
  const bool is_sound = (*fold)->trouble().empty();
  const bool is_over =
      is_sound ? (*fold)->end() || !(*fold)->has_begun() : (*fold)->idle_for() > limits::job_kept;
  if (!is_over) co_return false;
  const std::uint64_t last = (*fold)->last();
  auto asking = ask<DropJournal::Reply>(DropJournal{journal_of(id), last});
  const auto dropped = co_await asking;
  kept_.erase(id);
  order_.remove(id);
  if (!dropped) co_return std::unexpected(dropped.error());
  co_return dropped->dropped;
}

}  // namespace idem::admin
