#include "store/embedded/id_index.hpp"
#include "store/embedded/ledger_store.hpp"
#include "store/stores.hpp"

#include <idem/assert.hpp>
#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace idem {
namespace {

using embedded::IdIndex;

class MemoryJournals final : public Journals {
 public:
  JournalEnd end_of(const std::string& journal) override {
    const auto found = journals_.find(journal);
    if (found == journals_.end()) return {};
    return {found->second.lines.size(), found->second.bytes};
  }
  void append(const std::string& journal, const JournalLine& line, std::uint64_t bytes) override {
    Journal& to = journals_[journal];
    to.lines.push_back(line);
    to.bytes = bytes;
  }
  void read(const ReadLines& verb, const SeeLine& see) override {
    const auto found = journals_.find(verb.journal);
    if (found == journals_.end()) return;
    const auto& lines = found->second.lines;
    for (std::size_t at = verb.after; at < lines.size(); ++at) {
      if (!see(JournalLine(lines[at]))) return;
    }
  }
  std::vector<JournalSummary> list(const ListJournals& verb) override {
    std::vector<JournalSummary> found;
    const std::size_t most = std::min(verb.limit, limits::journal_read_lines_max);
    for (auto at = journals_.lower_bound(verb.prefix); at != journals_.end(); ++at) {
      if (found.size() >= most || !at->first.starts_with(verb.prefix)) break;
      if (at->first > verb.after) {
        found.push_back({at->first, at->second.lines.size(), at->second.bytes});
      }
    }
    return found;
  }
  void drop(const std::string& journal) override { journals_.erase(journal); }

 private:
  struct Journal {
    std::vector<JournalLine> lines;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Journal, std::less<>> journals_;
};

class MemoryTable final : public RecordTable {
 public:
  Loaded load(const RecordId& id, Parts parts, StoreTime now) override {
    const Record* const found = find(id);
    if (found == nullptr) return std::nullopt;
    if (parts == Parts::all) return Row{*found};
    return Row{part_of(*found, parts, now)};
  }

  void insert(Record&& record) override {
    if (free_.empty()) {
      free_.push_back(static_cast<std::int64_t>(records_.size()));
      records_.emplace_back();
    }
    const std::int64_t place = free_.back();
    free_.pop_back();
    index_.insert({IdIndex::head_of(record.id), place});
    Record& stored = at(place);
    stored = std::move(record);
    remember(stored);
  }

  void update(Row&& row, const transitions::Change& change) override {
    Record& stored = existing(row.record.id);
    forget(stored);
    Record next = std::move(row.record);
    if (!change.response) next.response = std::move(stored.response);
    if (!change.request) next.stored_request = std::move(stored.stored_request);
    stored = std::move(next);
    remember(stored);
  }

  void erase(const RecordId& id, std::int64_t) override {
    const std::optional<IdIndex::Entry> found = entry_of(id);
    IDEM_ASSERT(found.has_value());
    forget(at(found->place));
    at(found->place) = {};
    index_.erase(*found);
    free_.push_back(found->place);
  }

  std::vector<RecordId> due_for_sweep(StoreTime now, std::size_t limit) override {
    return due(sweepable_, now, limit);
  }
  std::vector<RecordId> due_for_reap(StoreTime now, std::size_t limit) override {
    return due(reapable_, now, limit);
  }

  std::optional<RecordId> next_claimable(StoreTime now) override {
    for (const auto& [moment, id] : pending_) {
      if (moment > now) break;
      if (transitions::is_claimable(existing(id), now)) return id;
    }
    return std::nullopt;
  }

  void hide_from_lifecycle(const RecordId&) override {}  // Every row can be read here.
  void hide_from_claims(const RecordId&) override {}

  std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                               std::vector<Record>& found) override {
    auto next = index_.first_from(verb.after ? IdIndex::head_of(*verb.after) : 0);
    std::optional<RecordId> last;
    for (std::size_t rows = 0; next; next = index_.next(*next)) {
      const Record& stored = at(next->place);
      if (verb.after && stored.id <= *verb.after) continue;
      if (found.size() >= verb.limit) return std::nullopt;
      if (rows++ == rows_max) return last;
      last = stored.id;
      auto record = transitions::view(without_bodies(stored), now);
      if (record && is_listed(verb, *record)) found.push_back(std::move(*record));
    }
    return std::nullopt;
  }

  void tally(Tallied& into) override {
    visit([&](const Record* record) {
      ++into.by_state[static_cast<std::size_t>(record->state)];
      if (record->state == State::unknown) into.add_unknown(record->changed_at, record->id);
      return true;
    });
  }
  void visit(const std::function<bool(const Record*)>& see) override {
    for (auto next = index_.first_from(0); next; next = index_.next(*next)) {
      if (!see(&at(next->place))) return;
    }
  }
  void save(const Naming&) override {}  // The store keeps it in memory.

  Usage usage_of(const std::string& scope) override { return usage_.of(scope); }
  void add_usage(const std::string& scope, const UsageChange& change) override {
    usage_.add(scope, change);
  }

  void append_evidence(const RecordId& id, const EvidenceEntry& entry) override {
    evidence_[id].push_back(entry);
  }
  Log evidence(const RecordId& id) override {
    const auto found = evidence_.find(id);
    return found == evidence_.end() ? std::vector<EvidenceEntry>() : found->second;
  }
  Journals* journals() override { return &journals_; }

 private:
  using Moments = std::set<std::pair<StoreTime, RecordId>>;

  Record& at(std::int64_t place) { return records_[static_cast<std::size_t>(place)]; }
  std::optional<IdIndex::Entry> entry_of(const RecordId& id) {
    const std::uint64_t head = IdIndex::head_of(id);
    auto next = index_.first_from(head);
    while (next && next->head == head && at(next->place).id != id) next = index_.next(*next);
    return next && next->head == head ? next : std::nullopt;
  }
  Record* find(const RecordId& id) {
    const auto found = entry_of(id);
    return found ? &at(found->place) : nullptr;
  }
  Record& existing(const RecordId& id) {
    Record* const found = find(id);
    IDEM_ASSERT(found != nullptr);
    return *found;
  }

  static Record part_of(const Record& record, Parts parts, StoreTime now) {
    Record part = record;
    if (part.stored_request) part.stored_request->clear();
    const bool answered =
        parts == Parts::answer && transitions::state_at(record, now) == State::completed;
    if (!answered) part.response.reset();
    return part;
  }

  Moments& moments_of(const Record& record) {
    const bool runs = record.state == State::in_progress || record.state == State::pending;
    return runs ? sweepable_ : reapable_;
  }
  void remember(const Record& record) {
    if (const auto due = transitions::due_at(record)) moments_of(record).emplace(*due, record.id);
    if (record.state == State::pending) pending_.emplace(record.locked_until, record.id);
  }
  void forget(const Record& record) {
    if (const auto due = transitions::due_at(record)) moments_of(record).erase({*due, record.id});
    if (record.state == State::pending) pending_.erase({record.locked_until, record.id});
  }

  static std::vector<RecordId> due(const Moments& moments, StoreTime now, std::size_t limit) {
    std::vector<RecordId> ids;
    for (const auto& [moment, id] : moments) {
      if (moment > now || ids.size() >= limit) break;
      ids.push_back(id);
    }
    return ids;
  }

  std::deque<Record> records_;
  std::vector<std::int64_t> free_;  ///< Places in records_ without a record.
  IdIndex index_;
  std::map<RecordId, std::vector<EvidenceEntry>> evidence_;
  MemoryJournals journals_;
  Moments sweepable_;
  Moments reapable_;
  Moments pending_;  ///< By the moment from which it may be claimed.
  UsageBook usage_;
};

/// There is nothing to make durable.
class NoMedium final : public embedded::Medium {
 public:
  void begin(StoreTime) override {}
  bool has_written() const override { return false; }
  void commit() override {}
  void put_highest_fence(Fence) override {}
  void put_clock_mark(const ClockMark&) override {}
  void put_closed() override {}
  void run(StoreTask& task, const Step&) override { task.refuse("memory has no transactions"); }
  std::string what_is_lost() override { return {}; }
  void tidy() override {}
  void close() override {}
};

Identity new_identity(const IdentitySettings& settings, const Naming& naming) {
  Identity identity;
  identity.generation = naming.generation;
  random_bytes(identity.scope_secret);
  // There are no records yet, so none under an older secret.
  identity.secret = settings.secrets.empty() ? identity.scope_secret : settings.secrets.front();
  return identity;
}

}  // namespace

std::expected<std::unique_ptr<Store>, StoreError> open_memory(const IdentitySettings& settings,
                                                              std::function<StoreTime()> clock) {
  HostClock host = this_host();
  if (clock) host = {clock, [clock] { return clock().time_since_epoch(); }, {}};
  Naming naming;
  naming.by_operation = settings.key_scope == "operation";
  return std::make_unique<embedded::LedgerStore>(
      embedded::LedgerParts{.identity = new_identity(settings, naming),
                            .naming = naming,
                            .clock = StoreClock(std::move(host), std::nullopt),
                            .medium = std::make_unique<NoMedium>(),
                            .table = std::make_unique<MemoryTable>()});
}

}  // namespace idem
