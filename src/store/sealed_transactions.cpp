#include "store/sealed_transactions.hpp"

#include "store/internal_sql.hpp"

#include <idem/store_wait.hpp>

namespace idem {
namespace {

using How = TransactionEnd::How;

TransactionEnd ended(How how, std::string why, std::optional<RecordId> damaged = {}) {
  TransactionEnd end;
  end.how = how;
  end.why = std::move(why);
  end.damaged = damaged;
  return end;
}

}  // namespace

// Before the transaction: its work may run on the store's own thread, which must not wait.
std::expected<std::string, TransactionEnd> SealedTransactions::scope_for(
    const InTransaction& what) {
  if (what.reserve) return what.reserve->scope;
  if (auto known = scopes_.find(what.id)) return std::move(*known);
  auto found = ask_and_wait(inner_, Find{what.id});
  if (!found) {
    StoreError& error = found.error();
    const bool is_damaged = error.code == StoreError::Code::damaged;
    return std::unexpected(
        ended(How::unavailable, std::move(error.detail), is_damaged ? error.record : std::nullopt));
  }
  if (!*found) return std::unexpected(ended(How::superseded, "there is no record of the attempt"));
  return (*found)->scope;
}

TransactionEnd SealedTransactions::run(InTransaction what) {
  std::string scope;
  if (keys_.seals()) {
    auto of_record = scope_for(what);
    if (!of_record) return std::move(of_record.error());
    scope = std::move(*of_record);
    what.work = [this, &scope, work = std::move(what.work)](
                    Transaction& transaction, const RecordId& id, const Attempt& attempt) mutable {
      auto step = work(transaction, id, attempt);
      auto* const complete = step ? std::get_if<Complete>(&*step) : nullptr;
      if (complete != nullptr) {
        seal_answer(keys_.newest(), {scope, id, attempt.fence}, complete->response);
      }
      return step;
    };
  }
  TransactionEnd end = transactions_.run(std::move(what));
  if (!end.reserved) return end;
  auto* const replay = std::get_if<Replay>(&*end.reserved);
  if (replay == nullptr) return end;
  const auto opened =
      keys_.open(replay->response, {scope, replay->id, replay->fence.value_or(Fence{0})});
  if (opened) return end;
  return ended(How::unavailable, opened.error().detail, opened.error().record);
}

std::expected<SqlRows, std::string> SealedTransactions::run_internal(
    InternalStatement which, std::span<const SqlValue> values) {
  return InternalSql::run(transactions_, which, values);
}

}  // namespace idem
