#include "store/log/slots.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/log/compaction.hpp"
#include "store/log/due_lists.hpp"
#include "store/log/due_versions.hpp"
#include "store/log/journal_lines.hpp"
#include "store/log/keys.hpp"
#include "store/log/meta.hpp"
#include "store/log/usage_values.hpp"
#include "store/log/work_lists.hpp"

#include <idem/limits.hpp>

#include <numeric>
#include <set>
#include <unordered_map>

namespace idem::segments {
namespace {

constexpr std::size_t visited_at_once = 4096;

class Slots final : public SlotTable {
 public:
  Slots(Database& db, Counts counts, embedded::InCommon* in_common)
      : db_(db),
        counts_(counts),
        segments_(db),
        due_(db),
        work_(db),
        usage_(db, in_common),
        journals_(db) {}

  Loaded load(const RecordId& id, Parts parts, StoreTime now) override {
    const auto present = present_of(id);
    if (!present) return std::unexpected(unreadable(id, present.error()));
    if (present->is_gone()) return std::nullopt;
    auto row = read_row(id, *present, parts, now);
    if (!row) return std::unexpected(std::move(row.error()));
    return std::move(*row);
  }

  void insert(Record&& record) override {
    put_in({std::move(record)}, {transitions::Write::insert, true, true});
  }

  void put_in(const Row& row, const transitions::Change& change) override {
    encode_answer_of(row.record);
    write(row.record, row.record.response ? std::string_view(row.record.response->body) : "");
    if (change.request) change_request(row.record);
  }

  void take_out(const RecordId& id, std::int64_t) override { drop(id); }

  void update(Row&& row, const transitions::Change& change) override {
    const Record& record = row.record;
    if (change.response) {
      encode_answer_of(record);
    } else {
      keep_answer_of(record.id);
    }
    drop(record.id);
    const std::string_view body = !change.response  ? std::string_view(kept_body_)
                                  : record.response ? std::string_view(record.response->body)
                                                    : std::string_view();
    write(record, body);
    if (change.request) change_request(record);
  }

  void erase(const RecordId& id, std::int64_t) override {
    drop(id);
    forget_request(id);
  }

  std::expected<std::string, StoreError> request_of(const Row& row) override {
    const RecordId& id = row.record.id;
    const auto found = db_.find(Family::requests, bytes_of(id), request_bytes_);
    if (!found) return std::unexpected(unreadable(id, found.error()));
    if (!*found) return std::unexpected(unreadable(id, "its request is missing"));
    const auto request = without_checksum(id, request_bytes_);
    if (!request) return std::unexpected(unreadable(id, "its request's checksum does not match"));
    return std::string(*request);
  }
  void drop_request(const RecordId& id, std::int64_t) override { forget_request(id); }

  bool holds_id(const RecordId& id) override {
    const auto present = present_of(id);
    return !present || !present->is_gone();
  }
  /// Places of records that run are not used any more.
  bool holds_place(std::int64_t) override { return false; }
  void leave_out(const RecordId& id) override { left_out_.insert(id); }

  std::vector<RecordId> due_for_sweep(StoreTime now, std::size_t limit) override {
    return work_.due(now, limit);
  }

  std::vector<RecordId> due_for_reap(StoreTime now, std::size_t limit) override {
    due_versions_.clear();
    return due_.due(now, limit, [this](const DueLists::Entry& entry) {
      const auto present = present_of(entry.id);
      if (!is_due(entry, present)) return false;
      if (present) due_versions_.add(*present);
      return true;
    });
  }

  std::optional<RecordId> next_claimable(StoreTime now) override {
    // A record that cannot be read is returned, too, so that the step hides it.
    return work_.first_to_claim(now, [&](const RecordId& id) {
      const auto row = load(id, Parts::slot, now);
      return !row || (*row && transitions::is_claimable((*row)->record, now));
    });
  }

  void hide_from_lifecycle(const RecordId& id) override { work_.hide_from_lifecycle(id); }
  void hide_from_claims(const RecordId& id) override { work_.hide_from_claims(id); }

  std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                               std::vector<Record>& found) override {
    const bool by_state = verb.state && WorkLists::has_list(*verb.state);
    return by_state ? list_work(verb, now, rows_max, found) : list_all(verb, now, rows_max, found);
  }

  void tally(Tallied& into) override {
    into.by_state = counts_.by_state;
    const std::string prefix = WorkLists::prefix_of(State::unknown);
    auto at = db_.iterate(Family::work);
    for (at.to(prefix); at.is_on_key() && at.key().starts_with(prefix); at.next()) {
      const auto id = to_id(at.key().substr(prefix.size()));
      const auto row = id ? load(*id, Parts::slot, {}) : Loaded(std::nullopt);
      if (row && *row) into.add_unknown((*row)->record.changed_at, *id);
    }
    db_.check(at, Family::work);
  }

  void visit(const std::function<bool(const Record*)>& see) override {
    std::optional<RecordId> after;
    do {
      const auto slice = db_.ids().slice(after, visited_at_once);
      if (slice.has_damage && !see(nullptr)) return;
      for (const IdEntry& entry : slice.entries) {
        if (!changed_.contains(entry.id) && !see_one(entry.id, see)) return;
      }
      after = slice.after;
    } while (after);
    for (const auto& [id, present] : changed_) {
      if (!present.is_gone() && !see_one(id, see)) return;
    }
  }

  void save(const Naming& naming) override { save_naming(db_, naming); }

  Usage usage_of(const std::string& scope) override { return usage_.of(scope); }
  void add_usage(const std::string& scope, const UsageChange& change) override {
    usage_.add(scope, change);
  }
  std::unique_lock<std::mutex> lock_usage(const std::string& scope) override {
    return usage_.lock(scope);
  }

  bool has_upkeep() const override { return segments_.has_empty() || compaction_.has_work(); }
  void upkeep(std::size_t bytes) override {
    is_counted_ |= segments_.has_empty();  // So that flush() goes on to them.
    if (!compaction_.has_work()) return;
    compaction_.step(
        bytes, [this](const Version& version, std::int64_t place) { return move(version, place); });
  }

  void flush() override {
    if (changed_.empty() && !is_counted_) return usage_.flush();
    due_.flush(
        [this](const DueLists::Entry& entry) { return is_due(entry, present_of(entry.id)); });
    for (const auto& [id, present] : changed_) db_.set(present);
    changed_.clear();
    due_versions_.clear();  // What changed is not their present one any more.
    is_counted_ = false;
    write_counts(db_, counts_);
    db_.ids().note_live(
        std::accumulate(counts_.by_state.begin(), counts_.by_state.end(), std::uint64_t{0}));
    segments_.flush();
    usage_.flush();
  }

  void append_evidence(const RecordId& id, const EvidenceEntry& entry) override {
    std::string key(bytes_of(id));
    append_ordered(key, static_cast<std::uint64_t>(++counts_.last_number));
    is_counted_ = true;
    db_.put(Family::evidence, key, to_evidence_value(id, entry));
  }

  Log evidence(const RecordId& id) override {
    std::vector<EvidenceEntry> entries;
    const std::string_view prefix = bytes_of(id);
    auto at = db_.iterate(Family::evidence);
    for (at.to(prefix); at.is_on_key() && at.key().starts_with(prefix); at.next()) {
      auto entry = parse_evidence_value(id, at.value());
      if (!entry) return std::unexpected(unreadable(id, entry.error()));
      entries.push_back(std::move(*entry));
    }
    if (!db_.is_sound(at, Family::evidence)) {
      return std::unexpected(unreadable(id, "its evidence cannot be read"));
    }
    return entries;
  }

  Journals* journals() override { return &journals_; }

 private:
  std::expected<IdEntry, std::string_view> present_of(const RecordId& id) {
    if (const auto changed = changed_.find(id); changed != changed_.end()) return changed->second;
    if (const IdEntry* due = due_versions_.find(id)) return *due;
    return db_.ids().find(id);
  }

  using Present = std::expected<IdEntry, std::string_view>;
  bool is_due(const DueLists::Entry& entry, const Present& present) const {
    // What cannot be read is not gone: the step finds out, and hides it.
    const bool is_present = !present || present->place == static_cast<std::uint64_t>(entry.place);
    return is_present && !work_.is_hidden_from_lifecycle(entry.id);
  }

  /// Valid until the next read or write.
  std::expected<Version, std::string_view> version_at(const IdEntry& present) {
    std::string_view bytes;
    const std::uint64_t place = present.place;
    if (place >= db_.next()) {
      bytes = std::string_view(db_.versions()).substr(place - db_.next(), present.size);
    } else if (const auto due = due_versions_.version(present)) {
      bytes = *due;
    } else {
      if (!db_.read_version(place, present.size, bytes_)) {
        return std::unexpected("its bytes are missing");
      }
      bytes = bytes_;
    }
    const auto version = version_in(bytes);
    if (!version || version->bytes.size() != bytes.size()) {
      return std::unexpected("its row is damaged");
    }
    return *version;
  }

  std::expected<Row, StoreError> read_row(const RecordId& id, const IdEntry& present, Parts parts,
                                          StoreTime now) {
    const auto version = version_at(present);
    if (!version) {
      // Of a missing right, too: as damage it would end what settles the record.
      auto why = db_.why_not_opened(present.place);
      if (why) return std::unexpected(StoreError{StoreError::Code::unavailable, std::move(*why)});
      return std::unexpected(unreadable(id, version.error()));
    }
    if (version->id != bytes_of(id)) {
      return std::unexpected(unreadable(id, "its row has another id"));
    }
    auto record = decode_record(id, version->record);
    if (!record) return std::unexpected(unreadable(id, record.error()));
    if (record->state != present.state) {
      return std::unexpected(unreadable(id, "its state is not that of its row"));
    }
    if (record->state == State::in_progress) {
      return std::unexpected(unreadable(id, "it is running, but among the settled records"));
    }
    Row row{std::move(*record), static_cast<std::int64_t>(present.place)};
    const bool answered =
        parts == Parts::all ||
        (parts == Parts::answer && transitions::state_at(row.record, now) == State::completed);
    if (answered && row.record.state == State::completed) {
      if (version->answer.empty()) return std::unexpected(unreadable(id, "its answer is missing"));
      auto response = decode_checked_answer(id, version->answer, version->body);
      if (!response) return std::unexpected(unreadable(id, response.error()));
      row.record.response = std::move(*response);
    }
    if (parts == Parts::all && row.record.stored_request) {
      auto request = request_of(row);
      if (!request) return std::unexpected(std::move(request.error()));
      row.record.stored_request = std::move(*request);
    }
    return row;
  }

  void encode_answer_of(const Record& record) {
    answer_bytes_.clear();
    if (record.response) encode_checked_answer(record.id, *record.response, answer_bytes_);
  }

  /// The step did not read the answer, so its bytes go on as they are.
  void keep_answer_of(const RecordId& id) {
    answer_bytes_.clear();
    kept_body_.clear();
    const auto present = present_of(id);
    if (!present || present->is_gone()) return;
    const auto version = version_at(*present);
    if (!version) return;
    answer_bytes_ = version->answer;
    kept_body_ = version->body;
  }

  /// A new version, with the answer in answer_bytes_.
  void write(const Record& record, std::string_view body) {
    std::string& versions = db_.versions();
    encode_record(record, record_bytes_);
    const std::size_t begin = versions.size();
    versions.append(bytes_of(record.id));
    const std::size_t framed_at = versions.size();
    versions.resize(framed_at + framed_bytes(record_bytes_) + framed_bytes(answer_bytes_) +
                    framed_bytes(body));
    ByteWriter out(versions.data() + framed_at);
    out.framed(record_bytes_);
    out.framed(answer_bytes_);
    out.framed(body);
    place_at(begin, record);
    ++counts_.by_state[static_cast<std::size_t>(record.state)];
    work_.add(record);
  }

  /// The version from there to the end of the transaction's is the record's present one.
  void place_at(std::size_t begin, const Record& record) {
    const std::uint64_t place = db_.next() + begin;
    const auto size = static_cast<std::uint32_t>(db_.versions().size() - begin);
    changed_[record.id] = {record.id, place, size, record.state};
    segments_.add(VersionFiles::file_of(place), size);
    const auto due = transitions::due_at(record);
    if (due && DueLists::has(record.state)) {
      due_.add(*due, {record.id, static_cast<std::int64_t>(place)});
    }
  }

  /// Copies a version to the end if it is its record's present one. False: it cannot be read.
  bool move(const Version& version, std::int64_t place) {
    const auto id = to_id(version.id);
    const auto present = id ? present_of(*id) : std::unexpected(std::string_view());
    if (!present) return false;
    if (present->place != static_cast<std::uint64_t>(place)) return true;
    const auto record = decode_record(*id, version.record);
    const bool fits =
        record && record->state == present->state && version.bytes.size() == present->size;
    if (!fits) return false;
    segments_.drop(VersionFiles::file_of(present->place), present->size);
    const std::size_t begin = db_.versions().size();
    db_.versions().append(version.bytes);
    place_at(begin, *record);
    return true;
  }

  /// The present version.
  void drop(const RecordId& id) {
    const auto present = present_of(id);
    if (!present || present->is_gone()) return;
    if (WorkLists::has_list(present->state)) {
      const auto version = version_at(*present);
      const auto record =
          version ? decode_record(id, version->record)
                  : std::expected<Record, std::string_view>(std::unexpected(version.error()));
      work_.drop(id, present->state, record ? &*record : nullptr);
    }
    const auto state = static_cast<std::size_t>(present->state);
    if (state < counts_.by_state.size() && counts_.by_state[state] > 0) --counts_.by_state[state];
    segments_.drop(VersionFiles::file_of(present->place), present->size);
    changed_[id] = {.id = id};
  }

  bool see_one(const std::optional<RecordId>& id, const std::function<bool(const Record*)>& see) {
    if (!id) return see(nullptr);
    const auto row = load(*id, Parts::slot, {});
    if (!row) return see(nullptr);
    return !*row || see(&(*row)->record);
  }

  std::optional<RecordId> list_work(const List& verb, StoreTime now, std::size_t rows_max,
                                    std::vector<Record>& found) {
    const std::string prefix = WorkLists::prefix_of(*verb.state);
    auto at = db_.iterate(Family::work);
    std::string from = prefix;
    if (verb.after) from.append(bytes_of(*verb.after));
    std::size_t seen = 0;
    for (at.to(from); at.is_on_key() && at.key().starts_with(prefix); at.next()) {
      if (found.size() >= verb.limit) return std::nullopt;
      const auto id = to_id(at.key().substr(prefix.size()));
      if (!id || (verb.after && *id <= *verb.after)) continue;
      show(verb, now, *id, found);
      if (++seen == rows_max) return id;
    }
    db_.check(at, Family::work);
    return std::nullopt;
  }

  std::optional<RecordId> list_all(const List& verb, StoreTime now, std::size_t rows_max,
                                   std::vector<Record>& found) {
    const auto slice = db_.ids().slice(verb.after, rows_max);
    for (const IdEntry& entry : slice.entries) {
      if (found.size() >= verb.limit) return std::nullopt;
      show(verb, now, entry.id, found);
    }
    return slice.after;
  }

  /// Appends the record if `verb` asks for it and it can be read.
  void show(const List& verb, StoreTime now, const RecordId& id, std::vector<Record>& found) {
    if (left_out_.contains(id)) return;
    const auto present = present_of(id);
    if (present && present->is_gone()) return;
    auto row = present ? read_row(id, *present, Parts::slot, now)
                       : std::expected<Row, StoreError>(Row{damaged_row(id)});
    if (!row) row = Row{damaged_row(id)};
    if (row->record.state == State::completed) {
      const auto version = version_at(*present);
      auto status =
          version
              ? decode_status(version->answer)
              : std::expected<StoredResponse, std::string_view>(std::unexpected(version.error()));
      if (status) row->record.response = std::move(*status);
    }
    auto record = transitions::view(std::move(row->record), now);
    if (record && is_listed(verb, *record)) found.push_back(std::move(*record));
  }

  void change_request(const Record& record) {
    if (!record.stored_request) return forget_request(record.id);
    request_bytes_ = *record.stored_request;
    append_checksum(record.id, request_bytes_);
    db_.put(Family::requests, bytes_of(record.id), request_bytes_);
  }
  /// Few records have one, and a deletion costs as much as a row.
  void forget_request(const RecordId& id) {
    const auto found = db_.find(Family::requests, bytes_of(id), request_bytes_);
    if (!found || *found) db_.erase(Family::requests, bytes_of(id));
  }

  Database& db_;
  Counts counts_;
  bool is_counted_ = false;  ///< The counts changed, and no record did.
  // Of this transaction.
  std::unordered_map<RecordId, IdEntry, IdHash> changed_;

  Segments segments_;
  Compaction compaction_{db_, segments_};
  DueLists due_;
  DueVersions due_versions_{db_};
  WorkLists work_;
  UsageValues usage_;
  JournalLines journals_;
  std::set<RecordId> left_out_;
  std::string bytes_;
  std::string record_bytes_;
  std::string answer_bytes_;
  std::string kept_body_;
  std::string request_bytes_;
};

}  // namespace

std::unique_ptr<SlotTable> make_slot_table(Database& db, const Counts& counts,
                                           embedded::InCommon* in_common) {
  return std::make_unique<Slots>(db, counts, in_common);
}

}  // namespace idem::segments
