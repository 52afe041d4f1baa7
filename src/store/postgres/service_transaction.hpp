#pragma once

#include "store/postgres/one_record.hpp"
#include "store/postgres/session.hpp"
#include "store/postgres/statements.hpp"

#include <idem/transaction.hpp>

#include <expected>

/// One transaction of a service, step by step: begin and be admitted, the work's statements, the
/// owner's verb, the end.
namespace idem::postgres {

/// What the work is given.
class PgTransaction final : public Transaction {
 public:
  /// `to_make`: a record that is to be made before anything can look for it, or end the
  /// transaction; none: there is one. Emptied when it is made.
  PgTransaction(Session& session, const RecordId& id, std::string recovery_point,
                std::optional<NewRecord>& to_make)
      : session_(session), id_(id), recovery_point_(std::move(recovery_point)), to_make_(to_make) {}

  using Transaction::run;
  SqlRows run(std::string_view sql, std::span<const SqlValue> values) override;
  const RecordId& record_id() const noexcept override { return id_; }
  const std::string& recovery_point() const noexcept override { return recovery_point_; }
  void fail(std::string why) override;
  const std::string& failure() const noexcept override { return failure_; }
  void* native() noexcept override { return connection(); }

  /// From here on the work may have done anything with it.
  pg_conn* connection() noexcept;
  bool was_lent() const noexcept { return was_lent_; }
  /// The failure is none of the work's: the same may go well another time.
  bool is_worth_another_try() const noexcept { return is_worth_another_try_; }
  /// Of the failure, as the server numbered it; empty: it did not.
  const std::string& sqlstate() const noexcept { return sqlstate_; }

  /// False: this has failed.
  bool make_record();

 protected:
  SqlRows run_own(OwnStatement which, std::span<const SqlValue> values) override;

 private:
  void fail_of(const Failure& failure);
  /// False: it has failed, or is none of the work's.
  bool may_ask();

  Session& session_;
  const RecordId& id_;
  std::string recovery_point_;
  std::optional<NewRecord>& to_make_;
  std::string failure_;
  std::string sqlstate_;
  bool was_lent_ = false;
  bool is_worth_another_try_ = false;
};

/// The right to run the work, in a transaction that is open.
struct Admission {
  RecordId id;
  Attempt attempt;
  /// The transaction's number, by which the server can be asked what became of it.
  std::string number;
  std::optional<CallResult> reserved{};
  /// Where the record is not made yet.
  std::optional<NewRecord> to_make{};
};
/// Why the work does not run. The transaction is over, or its session is closed.
struct NotAdmitted {
  TransactionEnd end;
  bool is_held = false;  ///< Another transaction has the record: worth another try, for a moment.
  bool is_race = false;  ///< Worth another try.
  std::optional<CallResult> reserved{};  ///< Committed, though it grants nothing.
};
std::expected<Admission, NotAdmitted> admit(Session& session, const InTransaction& what);

/// What the owner's verb came to.
struct Step {
  OwnerReply reply;
  /// The transaction is not the one that was admitted.
  bool is_another_transaction = false;
};
/// The transaction stays open, whatever the answer.
std::expected<Step, TransactionEnd> take_step(Session& session, const Admission& admission,
                                              const StoreCall& call);

/// Why a completion was not done. Nothing of the transaction can be committed any more.
struct Refused {
  TransactionEnd end;
  /// The transaction is not the one that was admitted.
  bool is_another_transaction = false;
};
/// The completion and the COMMIT in one round trip, which commits only what was completed: how it
/// went, committed, rolled_back or in_doubt. Only where the work cannot have ended the transaction
/// and lost the connection: what stood alone then could not be told from what was not there.
std::expected<TransactionEnd, Refused> complete_and_commit(Session& session,
                                                           const Admission& admission,
                                                           const Complete& verb);

/// How the COMMIT of a transaction of which no statement failed went: committed, rolled_back or
/// in_doubt.
TransactionEnd commit(Session& session);

/// After this nothing of the open transaction is there: the server rolls back what is not
/// committed also where it cannot be told to.
void roll_back(Session& session);

/// Whether it is certain that the transaction of this number left nothing.
bool left_nothing(Session& session, const std::string& number);

/// The work ended its transaction by itself, so that its rows may be there without its record.
/// Nobody knows, then: the record becomes unknown and forgets its attempt, which can release it no
/// more. What cannot be done now, the end of the lease does.
TransactionEnd give_up(Session& session, const Admission& admission);

TransactionEnd ended(TransactionEnd::How how, std::string why, std::string sqlstate = {});

}  // namespace idem::postgres
