#include "admin/audit/audit_trail.hpp"

#include "core/record/restore_note.hpp"
#include "core/record/store_clock.hpp"
#include "loop/store_link.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace idem::admin {
namespace {

using Code = StoreError::Code;

/// The settings noted last are near the end: few decisions come between two starts.
constexpr std::size_t noted_page_lines = 500;

AuditEntry entry_of_process(std::string what, std::string ref) {
  AuditEntry entry;
  entry.who = ref.substr(0, ref.find(' '));
  entry.role = entry.who;
  entry.login = "process";
  entry.what = std::move(what);
  entry.ref = std::move(ref);
  return entry;
}

StoreError too_busy() { return {Code::unavailable, "other processes keep appending to the audit"}; }

}  // namespace

AuditTrail::AuditTrail(Loop& loop, Store& store, LogSink log)
    : loop_(loop), store_(store), log_(std::move(log)) {}

// ---- one appender at a time in this process; compare-and-append keeps others apart ----

Task<void> AuditTrail::take_turn() {
  if (!is_taken_) {
    is_taken_ = true;
    co_return;
  }
  const auto start = [&](Resumption<bool> woken) { waiting_.push_back(std::move(woken)); };
  auto waiting = suspend<bool>(start);
  co_await waiting;
}

void AuditTrail::pass_turn() {
  if (waiting_.empty()) {
    is_taken_ = false;
    return;
  }
  // Posted: the running step belongs to another coroutine.
  loop_.post([woken = std::move(waiting_.front())]() mutable { woken(true); });
  waiting_.pop_front();
}

Task<std::expected<std::uint64_t, StoreError>> AuditTrail::append(AuditEntry entry) {
  std::optional<Doubt> doubt;
  auto appending = append_or_doubt(entry, doubt);
  auto seq = co_await appending;
  co_return seq;
}

Task<std::expected<std::uint64_t, StoreError>> AuditTrail::append_or_doubt(
    const AuditEntry& entry, std::optional<Doubt>& doubt) {
  auto taking = take_turn();
  co_await taking;
  auto appending = append_in_turn(entry, doubt);
  auto seq = co_await appending;
  pass_turn();
  co_return seq;
}

// A lost reply leaves a doubt. It ends once the journal has a line of that number: the doubtful
// append can not succeed any more. Until then the same bytes are sent again, so that the line is
// there once, whichever of the two calls wrote it.
Task<std::expected<std::uint64_t, StoreError>> AuditTrail::append_in_turn(
    const AuditEntry& entry, std::optional<Doubt>& doubt) {
  for (int tries = 0; tries < limits::audit_tries_max; ++tries) {
    if (!end_) {
      auto reading = read_end();
      const Failure failure = co_await reading;
      if (failure) co_return std::unexpected(*failure);
    }
    if (doubt && end_->last >= doubt->seq) {
      auto looking = is_there(*doubt);
      const auto found = co_await looking;
      if (!found) co_return std::unexpected(found.error());
      if (*found) co_return appended(entry, doubt->seq, doubt->line);
      doubt.reset();
    }
    const std::uint64_t seq = end_->last + 1;
    const bool is_same = doubt && doubt->seq == seq && doubt->prev == end_->link;
    const std::string line =
        is_same ? doubt->line
                : write_audit_line(seq, now(), entry, end_->link, store_.identity().secret);
    StoreCall call = AppendLine{std::string(audit_journal), end_->last, line};
    auto asking = ask_store(loop_, store_, call);
    const auto result = co_await asking;
    if (!result) {
      if (result.error().code != Code::in_doubt) co_return std::unexpected(result.error());
      doubt = Doubt{seq, end_->link, line};
      end_.reset();
      continue;
    }
    const auto& reply = std::get<AppendLine::Reply>(*result);
    set_now(reply.now);
    if (reply.appended) {
      end_ = End{seq, link_of(line)};
      co_return appended(entry, seq, line);
    }
    auto catching_up = catch_up(reply.last);
    const Failure failure = co_await catching_up;
    if (failure) co_return std::unexpected(*failure);
  }
  co_return std::unexpected(too_busy());
}

std::uint64_t AuditTrail::appended(const AuditEntry& entry, std::uint64_t seq,
                                   const std::string& line) {
  const auto parsed = parse_audit_line(line);
  log_(LogLevel::info, "audit",
       {{"seq", seq},
        {"hash", parsed ? parsed->hash : std::string()},
        {"who", entry.who},
        {"what", entry.what},
        {"ref", entry.ref},
        {"of", entry.of.value_or(0)}});
  return seq;
}

// ---- reading ----

Task<std::expected<ReadLines::Reply, StoreError>> AuditTrail::read(std::uint64_t after,
                                                                   std::size_t limit) {
  StoreCall call = ReadLines{std::string(audit_journal), after, limit};
  auto asking = ask_store(loop_, store_, call);
  auto result = co_await asking;
  if (!result) co_return std::unexpected(std::move(result.error()));
  auto& reply = std::get<ReadLines::Reply>(*result);
  set_now(reply.now);
  co_return std::move(reply);
}

Task<AuditTrail::Failure> AuditTrail::read_end() {
  auto asking = read(0, 0);
  const auto end = co_await asking;
  if (!end) co_return end.error();
  if (end->last == 0) {
    end_ = End{0, first_link(store_.identity().scope_secret)};
    co_return std::nullopt;
  }
  auto reading = read(end->last - 1, 1);
  const auto last = co_await reading;
  if (!last) co_return last.error();
  if (last->lines.empty()) {
    co_return StoreError{Code::damaged, "the last line of the audit is missing"};
  }
  const JournalLine& line = last->lines.front();
  if (const std::string why = why_unproven(line); !why.empty()) warn_of(line.seq, why);
  end_ = End{line.seq, link_of(line.bytes)};
  co_return std::nullopt;
}

// Others have appended. Their lines must follow from the ones that this process has seen.
Task<AuditTrail::Failure> AuditTrail::catch_up(std::uint64_t last) {
  const bool is_far = last > end_->last + limits::audit_scan_lines_max;
  if (last < end_->last || is_far) {
    if (!is_far) {
      log_(LogLevel::error, "audit_lines_lost", {{"after", last}, {"until", end_->last}});
    }
    end_.reset();
    co_return std::nullopt;
  }
  while (end_->last < last) {
    auto reading = read(end_->last, limits::journal_read_lines_max);
    const auto page = co_await reading;
    if (!page) co_return page.error();
    if (page->lines.empty()) {
      end_.reset();
      break;
    }
    for (const JournalLine& line : page->lines) follow(line);
  }
  co_return std::nullopt;
}

// Decisions go on behind such a line: `idem audit verify` names it from now on.
void AuditTrail::follow(const JournalLine& line) {
  std::string why = why_unproven(line);
  if (why.empty()) {
    const auto parsed = parse_audit_line(line.bytes);
    const bool follows =
        parsed->seq == line.seq && line.seq == end_->last + 1 && parsed->prev == end_->link;
    if (!follows) why = "it does not follow from the line before it";
  }
  if (!why.empty()) warn_of(line.seq, why);
  end_ = End{line.seq, link_of(line.bytes)};
}

std::string AuditTrail::why_unproven(const JournalLine& line) const {
  if (line.is_damaged) return "its checksum in the store does not fit";
  const auto parsed = parse_audit_line(line.bytes);
  if (!parsed) return "it is no line of an audit";
  const Secret* const secret = secret_of(parsed->secret);
  if (secret == nullptr) {
    return "its hash was made with the secret " + parsed->secret + ", which this process lacks";
  }
  return is_made_by(line.bytes, *secret) ? "" : "its hash does not fit";
}

void AuditTrail::warn_of(std::uint64_t seq, const std::string& why) {
  if (std::exchange(warned_of_, seq) == seq) return;
  log_(LogLevel::error, "audit_broken", {{"seq", seq}, {"reason", why}});
}

Task<std::expected<bool, StoreError>> AuditTrail::is_there(const Doubt& doubt) {
  auto reading = read(doubt.seq - 1, 1);
  const auto found = co_await reading;
  if (!found) co_return std::unexpected(found.error());
  co_return !found->lines.empty() && found->lines.front().bytes == doubt.line;
}

const Secret* AuditTrail::secret_of(std::string_view id) const {
  const Identity& identity = store_.identity();
  if (secret_id(identity.secret) == id) return &identity.secret;
  const auto found =
      std::ranges::find_if(identity.older, [&](const Secret& one) { return secret_id(one) == id; });
  return found == identity.older.end() ? nullptr : &*found;
}

void AuditTrail::set_now(StoreTime now) {
  now_ = now;
  now_since_ = MonotonicClock::now();
}

StoreTime AuditTrail::now() const {
  return now_ + std::chrono::duration_cast<Millis>(MonotonicClock::now() - now_since_);
}

// ---- outcomes ----

Task<void> AuditTrail::conclude(AuditEntry intent, std::uint64_t of, std::string after) {
  intent.of = of;
  intent.after = std::move(after);
  std::optional<Doubt> doubt;
  auto appending = append_or_doubt(intent, doubt);
  const auto done = co_await appending;
  if (done) co_return;
  log_(LogLevel::error, "audit_outcome_waits", {{"of", of}, {"reason", done.error().detail}});
  if (owed_ >= limits::audit_owed_max) co_return;
  ++owed_;
  loop_.spawn(conclude_later(std::move(intent), std::move(doubt)));
}

Task<void> AuditTrail::conclude_later(AuditEntry outcome, std::optional<Doubt> doubt) {
  for (;;) {
    auto sleeping = loop_.sleep(limits::audit_retry_interval);
    co_await sleeping;
    auto appending = append_or_doubt(outcome, doubt);
    const auto done = co_await appending;
    if (done) break;
  }
  --owed_;
}

// ---- lines that the log has lost ----

void AuditTrail::note_lost_in_log(std::uint64_t seq, std::string process) {
  ++losses_;
  loop_.post([this, seq, process = std::move(process)]() mutable {
    lost_.push_back(seq);
    if (lost_.size() == 1) loop_.spawn(note_losses(std::move(process)));
  });
}

Task<void> AuditTrail::note_losses(std::string process) {
  AuditEntry entry = entry_of_process(std::string(lost_in_log), std::move(process));
  while (!lost_.empty()) {
    const std::size_t count = lost_.size();
    const auto [first, last] = std::ranges::minmax(lost_);
    entry.after = "The log of this process lacks " + std::to_string(count) + " of the lines " +
                  std::to_string(first) + " to " + std::to_string(last) + ".";
    auto appending = append(entry);
    const auto done = co_await appending;
    if (done) {
      lost_.erase(lost_.begin(), lost_.begin() + static_cast<std::ptrdiff_t>(count));
      losses_ -= count;
      continue;
    }
    auto sleeping = loop_.sleep(limits::audit_retry_interval);
    co_await sleeping;
  }
}

// ---- settings ----

void AuditTrail::note_settings(std::string what, std::string ref,
                               std::vector<NotedSetting> settings) {
  AuditEntry entry = entry_of_process(std::move(what), std::move(ref));
  notes_.push_back({std::move(entry), std::move(settings)});
  if (is_noting_) return;
  is_noting_ = true;
  loop_.spawn(note_all());
}

Task<void> AuditTrail::note_all() {
  bool has_warned = false;
  while (!notes_.empty()) {
    auto noting = note(notes_.front());
    const auto noted = co_await noting;
    if (noted) {
      shown_before_ = std::move(notes_.front().settings);
      notes_.pop_front();
      has_warned = false;
      continue;
    }
    if (!has_warned) {
      log_(LogLevel::warning, "audit_waits",
           {{"what", notes_.front().entry.what}, {"reason", noted.error().detail}});
    }
    has_warned = true;
    auto sleeping = loop_.sleep(limits::audit_retry_interval);
    co_await sleeping;
  }
  is_noting_ = false;
}

// A restore has no secret to make a line of the audit with, so the first start after it does. If
// that one ends before it has noted so, the next one writes the same line once more.
Task<AuditTrail::Failure> AuditTrail::note_restores(std::string process) {
  const std::string journal(restores_journal);
  StoreCall call = ReadLines{.journal = journal, .limit = limits::journal_read_lines_max};
  auto asking = ask_store(loop_, store_, call);
  auto result = co_await asking;
  if (!result) co_return result.error();
  const auto read = std::get<ReadLines::Reply>(*result);
  std::set<std::uint64_t> audited;
  for (const JournalLine& line : read.lines) {
    if (const auto seq = parse_audited_line(line.bytes)) audited.insert(*seq);
  }
  std::uint64_t last = read.last;
  for (const JournalLine& line : read.lines) {
    const auto restore = parse_restore_note(line.bytes);
    if (!restore || line.is_damaged || audited.contains(line.seq)) continue;
    AuditEntry entry = entry_of_process(std::string(restored), process);
    entry.ref = "restore " + std::to_string(line.seq);
    entry.after = sentences_of(*restore);
    auto appending = append(entry);
    const auto appended = co_await appending;
    if (!appended) co_return appended.error();
    StoreCall mark = AppendLine{journal, last, audited_line(line.seq)};
    auto marking = ask_store(loop_, store_, mark);
    const auto marked = co_await marking;
    if (!marked) co_return marked.error();
    last = std::get<AppendLine::Reply>(*marked).last;
  }
  co_return std::nullopt;
}

Task<std::expected<bool, StoreError>> AuditTrail::note(Note& note) {
  if (!has_noted_restores_) {
    auto noting = note_restores(note.entry.ref);
    const Failure failure = co_await noting;
    if (failure) co_return std::unexpected(*failure);
    has_noted_restores_ = true;
  }
  auto looking = last_noted(note.entry.ref);
  const auto last = co_await looking;
  if (!last) co_return std::unexpected(last.error());
  std::map<std::string, std::string> noted;
  if (*last) noted = {(*last)->entry.settings.begin(), (*last)->entry.settings.end()};
  const Secret* const then = *last ? secret_of((*last)->secret) : nullptr;
  AuditEntry entry = note.entry;
  bool is_unchanged = true;
  for (const NotedSetting& one : note.settings) {
    const auto found = noted.find(one.name);
    const bool is_same = then != nullptr && found != noted.end() &&
                         found->second == setting_digest(*then, one.name, one.value);
    const bool found_none = found == noted.end();
    if (!found_none) noted.erase(found);
    const std::string& name = one.name;
    entry.settings.emplace_back(name, setting_digest(store_.identity().secret, name, one.value));
    if (is_same) continue;
    is_unchanged = false;
    const bool is_first_and_unset = found_none && one.shown.empty();
    if (is_first_and_unset) continue;
    entry.after += name + ": " + one.shown + '\n';
    const auto before = std::ranges::find(shown_before_, name, &NotedSetting::name);
    if (before != shown_before_.end()) entry.before += name + ": " + before->shown + '\n';
  }
  for (const auto& [name, digest] : noted) entry.after += name + ": removed\n";
  is_unchanged = is_unchanged && noted.empty();
  if (*last && is_unchanged) co_return false;
  auto appending = append(entry);
  const auto done = co_await appending;
  if (!done) co_return std::unexpected(done.error());
  co_return true;
}

// From the end of the journal backwards.
Task<std::expected<std::optional<AuditLine>, StoreError>> AuditTrail::last_noted(
    const std::string& ref) {
  auto asking = read(0, 0);
  const auto end = co_await asking;
  if (!end) co_return std::unexpected(end.error());
  std::uint64_t until = end->last;
  const std::uint64_t least = until - std::min<std::uint64_t>(until, limits::audit_scan_lines_max);
  while (until > least) {
    const std::uint64_t from = until - std::min<std::uint64_t>(until, noted_page_lines);
    std::optional<AuditLine> found;
    for (std::uint64_t at = from; at < until;) {
      auto reading = read(at, until - at);
      const auto page = co_await reading;
      if (!page) co_return std::unexpected(page.error());
      if (page->lines.empty()) break;
      for (const JournalLine& one : page->lines) {
        auto line = parse_audit_line(one.bytes);
        if (!line || line->entry.ref != ref || !line->entry.what.starts_with("config.")) continue;
        const Secret* const secret = secret_of(line->secret);
        if (secret != nullptr && is_made_by(one.bytes, *secret)) found = std::move(*line);
      }
      at = page->lines.back().seq;
    }
    if (found) co_return found;
    until = from;
  }
  co_return std::nullopt;
}

}  // namespace idem::admin
