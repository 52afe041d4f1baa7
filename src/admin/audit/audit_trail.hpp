#pragma once

#include "admin/audit/audit_line.hpp"
#include "admin/audit/noted_setting.hpp"
#include "loop/loop.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

#include <atomic>
#include <deque>
#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace idem::admin {

/// Appends to the audit of a store, to which other processes may append, too. Each line is also an
/// event `audit` of the log, so that the log proves later which lines there were. Loop's thread
/// only; the loop runs until all tasks have ended, or no more.
class AuditTrail {
 public:
  /// What the line about losses of the log says was done. The log does not report its own loss.
  static constexpr std::string_view lost_in_log = "log.lost";

  /// All outlive it.
  AuditTrail(Loop& loop, Store& store, LogSink log);
  AuditTrail(const AuditTrail&) = delete;
  AuditTrail& operator=(const AuditTrail&) = delete;

  /// Appends a line, durably. Error: the store has not confirmed it, so the decision must not be
  /// made; the line may be there all the same.
  Task<std::expected<std::uint64_t, StoreError>> append(AuditEntry entry);

  /// Appends the outcome of the intent `of`. If the store does not answer, this goes on in the
  /// background: the decision is made.
  Task<void> conclude(AuditEntry intent, std::uint64_t of, std::string after);

  /// What the line about a restore of the store says was done.
  static constexpr std::string_view restored = "store.restored";

  /// Appends a line if the settings differ from those that the last line about `ref` names. Before
  /// the first one it appends a line for each restore that the store has gone through and that has
  /// none. Goes on in the background until the store confirms it. Later calls come behind earlier
  /// ones.
  void note_settings(std::string what, std::string ref, std::vector<NotedSetting> settings);

  /// The log has lost the event of line `seq`: appends a line `lost_in_log` that says so. Goes on
  /// in the background until the store confirms it. `process`: as `ref` in note_settings(). Safe
  /// from any thread.
  void note_lost_in_log(std::uint64_t seq, std::string process);
  /// Losses that no line names yet. Safe from any thread.
  std::size_t losses_to_note() const noexcept { return losses_.load(); }

 private:
  /// The end of the journal, as this process has seen it last.
  struct End {
    std::uint64_t last = 0;
    std::string link;
  };
  /// A line whose append was in doubt.
  struct Doubt {
    std::uint64_t seq = 0;
    std::string prev;
    std::string line;
  };
  struct Note {
    AuditEntry entry;
    std::vector<NotedSetting> settings;
  };
  using Failure = std::optional<StoreError>;

  Task<void> take_turn();
  void pass_turn();
  /// `doubt`: of earlier tries to append the same entry.
  Task<std::expected<std::uint64_t, StoreError>> append_or_doubt(const AuditEntry& entry,
                                                                 std::optional<Doubt>& doubt);
  Task<std::expected<std::uint64_t, StoreError>> append_in_turn(const AuditEntry& entry,
                                                                std::optional<Doubt>& doubt);
  Task<std::expected<ReadLines::Reply, StoreError>> read(std::uint64_t after, std::size_t limit);
  Task<Failure> read_end();
  Task<Failure> catch_up(std::uint64_t last);
  void follow(const JournalLine& line);
  /// Why nobody with a secret of this process has made the line; empty: one has.
  std::string why_unproven(const JournalLine& line) const;
  void warn_of(std::uint64_t seq, const std::string& why);
  /// Whether the line in doubt lies there.
  Task<std::expected<bool, StoreError>> is_there(const Doubt& doubt);
  std::uint64_t appended(const AuditEntry& entry, std::uint64_t seq, const std::string& line);
  StoreTime now() const;
  void set_now(StoreTime now);

  Task<void> conclude_later(AuditEntry outcome, std::optional<Doubt> doubt);
  Task<void> note_all();
  Task<std::expected<bool, StoreError>> note(Note& note);
  Task<Failure> note_restores(std::string process);
  Task<void> note_losses(std::string process);
  using Noted = std::vector<std::pair<std::string, std::string>>;
  /// The settings that the last line about `ref` names, and the id of its secret.
  Task<std::expected<std::optional<AuditLine>, StoreError>> last_noted(const std::string& ref);
  const Secret* secret_of(std::string_view id) const;

  Loop& loop_;
  Store& store_;
  LogSink log_;
  std::optional<End> end_;
  std::uint64_t warned_of_ = 0;  ///< The number of the line that the log named last.
  bool is_taken_ = false;
  std::deque<Resumption<bool>> waiting_;
  StoreTime now_{};
  MonotonicTime now_since_{};
  std::size_t owed_ = 0;
  std::deque<Note> notes_;
  bool is_noting_ = false;
  bool has_noted_restores_ = false;
  std::atomic<std::size_t> losses_{0};
  std::vector<std::uint64_t> lost_;         ///< Those of them that the loop knows of.
  std::vector<NotedSetting> shown_before_;  ///< Those of the last note, for `before`.
};

}  // namespace idem::admin
