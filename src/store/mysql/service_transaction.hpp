#pragma once

#include "store/mysql/session.hpp"

#include <idem/transaction.hpp>

#include <expected>

/// One transaction of a service, step by step: its begin and admission, the work's statements, the
/// owner's verb with the COMMIT, the end.
namespace idem::mysql {

/// The transaction as the work sees it.
class MysqlTransaction final : public Transaction {
 public:
  MysqlTransaction(Session& session, const RecordId& id, const Attempt& attempt,
                   std::string recovery_point)
      : session_(session), id_(id), attempt_(attempt), recovery_point_(std::move(recovery_point)) {}

  using Transaction::run;
  SqlRows run(std::string_view sql, std::span<const SqlValue> values) override;
  const RecordId& record_id() const noexcept override { return id_; }
  const std::string& recovery_point() const noexcept override { return recovery_point_; }
  void fail(std::string why) override;
  /// Also that of a statement which the work sent on the lent connection itself.
  const std::string& failure() const noexcept override;
  void* native() noexcept override { return connection(); }

  /// From here on the work may have done anything with it.
  st_mysql* connection() noexcept;
  /// The work may have ended the transaction itself. A row of the transaction then tells whether it
  /// was committed.
  bool is_marked() const noexcept { return is_marked_; }
  /// The work did not cause the failure(), and may succeed another time.
  bool is_worth_another_try() const noexcept { return failed_.is_worth_another_try; }
  /// The server's SQLSTATE of the failure(); empty: it has none.
  const std::string& sqlstate() const noexcept { return failed_.sqlstate; }
  /// The database ended it, or one of its waits, in favour of another transaction.
  bool gave_way() const noexcept { return failed_.gave_way; }

 protected:
  SqlRows run_internal(InternalStatement which, std::span<const SqlValue> values) override;

 private:
  struct Failed {
    std::string why;
    std::string sqlstate;
    bool is_worth_another_try = false;
    bool gave_way = false;
  };
  static Failed failed_by(const SessionFailure& failure);
  std::vector<StatementResult> ask(std::string_view sql, Millis patience);
  /// Before the work can end the transaction. False: it has failed.
  bool mark();

  Session& session_;
  const RecordId& id_;
  const Attempt& attempt_;
  std::string recovery_point_;
  mutable Failed failed_;  ///< failure() looks at a lent connection when it is asked.
  bool was_lent_ = false;
  bool is_marked_ = false;
};

/// Comes before all that writes: a user with the right to do so would go on writing to a server
/// that has been replaced.
inline constexpr std::string_view read_only_sql = "SELECT @@GLOBAL.read_only";
inline constexpr std::string_view no_writes = "the server accepts no writes any more (read_only)";
/// By the first rows among the answers, those of read_only_sql.
bool is_read_only(const std::vector<StatementResult>& answers);

/// The rows of one of Idem's statements, in the open transaction.
std::expected<SqlRows, SessionFailure> ask_internal(Session& session, InternalStatement which,
                                                    std::span<const SqlValue> values);

/// The right to run the work, in the open transaction.
struct Admission {
  RecordId id;
  Attempt attempt;
  std::optional<ReserveOutcome> reserved{};  ///< By this transaction: an Execute.
};
/// Why the work must not run. Nothing of the transaction is left.
struct NotAdmitted {
  TransactionEnd end;
  bool is_held = false;  ///< Another transaction has the record: worth another try, for a moment.
  bool is_race = false;  ///< Worth another try.
  bool is_met = false;   ///< The key is not new. Only the store's own steps can answer.
};

/// Locks the record of an attempt that was granted before.
std::expected<Admission, NotAdmitted> admit_attempt(Session& session, const RecordId& id,
                                                    const Attempt& attempt);
/// Grants a new attempt of a key with one name and without a quota.
std::expected<Admission, NotAdmitted> admit_reserve(Session& session, const Reserve& reserve);

/// How the owner's verb and the COMMIT ended, which go in one packet: the server executes the
/// COMMIT only if the verb was done, in the transaction that was begun.
struct Settled {
  TransactionEnd end;
  /// The work ended the transaction itself.
  bool is_another_transaction = false;
  /// Another server or store takes the session's place, once it has proven that nothing is left.
  bool leads_elsewhere = false;
};
Settled settle_and_commit(Session& session, const Admission& admission, const StoreCall& step,
                          bool is_marked);

/// Ends the open transaction without a trace: the server rolls back an uncommitted transaction also
/// when the connection is lost.
void roll_back(Session& session);

/// True if a marked transaction certainly left nothing.
bool left_nothing(Session& session, const Admission& admission);

/// For work that ended its transaction itself, so that its rows may be committed without the
/// record. The record becomes unknown and forgets its attempt, which can release it no more. If
/// that fails, the end of the lease does it.
TransactionEnd give_up(Session& session, const Admission& admission);

TransactionEnd ended(TransactionEnd::How how, std::string why, std::string sqlstate = {});

}  // namespace idem::mysql
