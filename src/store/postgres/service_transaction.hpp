#pragma once

#include "store/postgres/one_record.hpp"
#include "store/postgres/session.hpp"
#include "store/postgres/statements.hpp"

#include <idem/transaction.hpp>

#include <expected>

/// One transaction of a service, step by step: its begin and admission, the work's statements, the
/// owner's verb, the end.
namespace idem::postgres {

/// The transaction as the work sees it.
class PgTransaction final : public Transaction {
 public:
  /// `to_make`: a record to be made before anything can look for it or end the transaction; none:
  /// the record is there. Emptied when it is made.
  PgTransaction(Session& session, const RecordId& id, std::string recovery_point,
                std::optional<NewRecord>& to_make)
      : session_(session), id_(id), recovery_point_(std::move(recovery_point)), to_make_(to_make) {}
  ~PgTransaction() override;
  PgTransaction(const PgTransaction&) = delete;
  PgTransaction& operator=(const PgTransaction&) = delete;

  using Transaction::run;
  SqlRows run(std::string_view sql, std::span<const SqlValue> values) override;
  const RecordId& record_id() const noexcept override { return id_; }
  const std::string& recovery_point() const noexcept override { return recovery_point_; }
  void fail(std::string why) override;
  /// Also that of a statement which the work sent on the lent connection itself.
  const std::string& failure() const noexcept override;
  void* native() noexcept override { return connection(); }

  /// From here on the work may have done anything with it.
  pg_conn* connection() noexcept;
  bool was_lent() const noexcept { return was_lent_; }
  /// The work did not cause the failure(), and may succeed another time.
  bool is_worth_another_try() const noexcept { return failed_.is_worth_another_try; }
  /// The server's SQLSTATE of the failure(); empty: it has none.
  const std::string& sqlstate() const noexcept { return failed_.sqlstate; }

  /// Makes the record of `to_make`, if there is one. False: this transaction has failed.
  bool make_record();

 protected:
  SqlRows run_internal(InternalStatement which, std::span<const SqlValue> values) override;

 private:
  void fail_of(const Failure& failure);
  /// False: it has failed, or its transaction is over.
  bool may_ask();

  Session& session_;
  const RecordId& id_;
  std::string recovery_point_;
  std::optional<NewRecord>& to_make_;
  struct Failed {
    std::string why;
    std::string sqlstate;
    bool is_worth_another_try = false;
  };
  static Failed failed_by(const Failure& failure);
  mutable Failed failed_;  ///< failure() looks at a lent connection when it is asked.
  bool was_lent_ = false;
};

/// The right to run the work, in the open transaction.
struct Admission {
  RecordId id;
  Attempt attempt;
  /// The transaction's number, by which the server knows how it ended.
  std::string number;
  std::optional<CallResult> reserved{};
  /// A record that is not made yet.
  std::optional<NewRecord> to_make{};
};
/// Why the work must not run. The transaction is over, or its session is closed.
struct NotAdmitted {
  TransactionEnd end;
  bool is_held = false;  ///< Another transaction has the record: worth another try, for a moment.
  bool is_race = false;  ///< Worth another try.
  std::optional<CallResult> reserved{};  ///< Committed, without a new attempt.
};
std::expected<Admission, NotAdmitted> admit(Session& session, const InTransaction& what);

/// The result of the owner's verb.
struct Step {
  OwnerReply reply;
  /// The transaction is not the one that was admitted.
  bool is_another_transaction = false;
};
/// The transaction stays open, whatever the result.
std::expected<Step, TransactionEnd> run_step(Session& session, const Admission& admission,
                                             const StoreCall& call);

/// Why a completion was not done. Nothing of the transaction can be committed any more.
struct Refused {
  TransactionEnd end;
  /// The transaction is not the one that was admitted.
  bool is_another_transaction = false;
};
/// Sends the completion and the COMMIT in one round trip, which commits only if the record was
/// completed. The end is committed, rolled_back or in_doubt. Not for work that had the connection
/// itself: rows that it committed alone would look like rows that are not there.
std::expected<TransactionEnd, Refused> complete_and_commit(Session& session,
                                                           const Admission& admission,
                                                           const Complete& verb);

/// Commits a transaction of which no statement failed: committed, rolled_back or in_doubt.
TransactionEnd commit(Session& session);

/// Ends the open transaction without a trace: the server rolls back an uncommitted transaction also
/// when the connection is lost.
void roll_back(Session& session);

/// True if the transaction of this number certainly left nothing.
bool left_nothing(Session& session, const std::string& number);

/// For work that ended its transaction itself, so that its rows may be committed without the
/// record. The record becomes unknown and forgets its attempt, which can release it no more. If
/// that fails, the end of the lease does it.
TransactionEnd give_up(Session& session, const Admission& admission);

TransactionEnd ended(TransactionEnd::How how, std::string why, std::string sqlstate = {});

}  // namespace idem::postgres
