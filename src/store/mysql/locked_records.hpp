#pragma once

#include "core/transitions/snapshot_table.hpp"
#include "store/mysql/connection.hpp"
#include "store/mysql/row.hpp"

#include <idem/store.hpp>

#include <map>
#include <set>
#include <span>

/// One transaction's records: what it locks and reads, the steps over that, and what it writes.
namespace idem::mysql {

struct Statements;

/// The parts of a record that a step needs beside its row.
struct Parts {
  bool answer = false;
  bool request = false;
  bool evidence = false;
  /// Another transaction may be making the record: what nobody has committed is looked at, too.
  bool may_be_new = false;
};

class LockedRecords {
 public:
  /// The record is one of those to be locked.
  void want(const RecordId& id, Parts parts = {});
  /// Reserves are among the steps: the generation of names stays until the commit.
  void want_generation() { wants_generation_ = true; }
  /// The usage of a scope. `alone`: no other transaction may count a new key of it meanwhile, and
  /// if one does, the scope is held.
  void want_usage(const std::string& scope, bool alone);

  /// The statements that begin the transaction. They wait for no application's transaction that
  /// has a record.
  std::string reading() const;
  /// Their results. The error is for people: they are not as they should be.
  std::expected<void, std::string> read(const Results& results);

  /// Then the statement that tells which of the other records are held, and which are not there;
  /// empty: that is known.
  std::string looking_for_missing() const;
  void read_missing(const Results& results);
  /// Without that: all of them count as held.
  void hold_missing();

  /// Then the statements that read the parts, a slice of them at a time; empty: all are read.
  std::string reading_parts();
  void read_parts(const Results& results);

  /// Another transaction has the record, or is making it.
  bool is_held(const RecordId& id) const { return held_.contains(id); }
  /// Another transaction counts the keys of a scope that was wanted alone.
  bool is_scope_held(const std::string& scope) const { return !scopes_.at(scope).is_locked; }
  /// There is a row of it, perhaps a damaged one.
  bool has(const RecordId& id) const;
  bool is_read_only() const noexcept { return is_read_only_; }
  StoreTime now() const noexcept { return now_; }
  /// None: the store has no identity.
  const std::optional<std::uint64_t>& generation() const noexcept { return generation_; }
  /// With the generation: nobody may begin work here (core/naming/copied_identity.hpp).
  bool is_marked() const noexcept { return is_marked_; }

  /// The step of `call` over these records, which are wanted and not held. Each step sees those
  /// before. `last_fence`: the process's last one; becomes the last one that was granted.
  StoreResult step(const StoreCall& call, std::span<const RecordId> ids, const std::string& scope,
                   Fence& last_fence);
  bool ended_a_lease() const noexcept { return ended_a_lease_; }
  /// A record that cannot be read is not due, or not claimable, any more: it would be for ever.
  void hide_from_lifecycle(const RecordId& id) { not_due_.insert(id); }
  void hide_from_claims(const RecordId& id) { not_claimable_.insert(id); }

  bool writes() const noexcept;
  /// The statements that write the steps and end the transaction.
  std::string writing() const;
  /// How many they are; the last one is the COMMIT.
  std::size_t written_statements() const noexcept { return written_statements_; }

 private:
  struct Entry {
    Parts parts{};
    bool was_there = false;  ///< A row was read.
    bool was_pending = false;
    std::expected<std::optional<Record>, StoreError> now{std::nullopt};
    std::optional<SlotCells> read{};  ///< Of a changed record that was there.
    bool is_changed = false;
    bool has_new_response = false;
    bool has_new_request = false;
    std::vector<EvidenceEntry> log{};  ///< If it was wanted.
    std::optional<StoreError> log_error{};
  };
  struct ScopeUsage {
    bool alone = false;
    bool is_locked = false;
    Usage usage{};
    UsageChange change{};
  };

  std::vector<RecordId> ids() const;
  std::vector<RecordId> new_ids() const;
  void hold(const Rows& ids);
  std::string scopes(bool alone_only) const;
  void apply(RecordWrite write);
  void write_records(Statements& to) const;
  struct Written;
  static void write_rows(Statements& to, std::span<const Written> rows, bool inserts);
  void write_waiting(Statements& to) const;
  void write_usage(Statements& to) const;
  void write_fence(Statements& to) const;

  std::map<RecordId, Entry> entries_;
  std::map<std::string, ScopeUsage> scopes_;
  bool wants_generation_ = false;
  bool is_marked_ = false;

  std::set<RecordId> held_;
  std::optional<std::uint64_t> generation_;
  StoreTime now_{};
  Fence fence_before_ = 0;
  bool is_read_only_ = false;
  std::vector<RecordId> missing_;  ///< Neither locked nor looked for.
  std::vector<RecordId> unread_;   ///< Their parts.

  std::vector<std::pair<RecordId, EvidenceEntry>> evidence_;
  std::set<RecordId> not_due_;
  std::set<RecordId> not_claimable_;
  Fence erased_fence_ = 0;                 ///< The highest of erased records, or a floor.
  std::optional<Fence> inserted_fence_{};  ///< The lowest of new records.
  bool ended_a_lease_ = false;
  mutable std::size_t written_statements_ = 0;
};

}  // namespace idem::mysql
