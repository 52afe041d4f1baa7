#include "store/sealed_transactions.hpp"

#include "store/internal_sql.hpp"

#include <idem/store_wait.hpp>

#include <future>
#include <memory>

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

std::expected<Ring, StoreError> SealedTransactions::read_keys(const std::string& scope,
                                                              const RecordId& id) {
  if (const auto why = why_not_to_wait(); !why.empty()) {
    return std::unexpected(StoreError{StoreError::Code::unavailable, std::string(why)});
  }
  // Shared, because the store's thread is still inside set_value when the waiter wakes and leaves.
  const auto promise = std::make_shared<std::promise<std::expected<Ring, StoreError>>>();
  auto keys = promise->get_future();
  scoped_.read(scope, id, [promise](std::expected<Ring, StoreError> read) {
    promise->set_value(std::move(read));
  });
  about_to_wait();
  return keys.get();
}

Opened SealedTransactions::open(Replay& replay, const std::string& scope) {
  const SealedFor bound{scope, replay.id, replay.fence.value_or(Fence{0})};
  auto opened = keys_.open(replay.response, bound, nullptr);
  if (opened != Kept::elsewhere) return opened;
  const auto ring = read_keys(scope, replay.id);
  if (!ring) return std::unexpected(ring.error());
  opened = keys_.open(replay.response, bound, &**ring);
  if (opened == Kept::shredded) drop_content(replay.response);
  return opened;
}

// The key is there before the transaction: within it nothing is read. A work that takes longer than
// the key lives, while its scope is shredded, is done, and its answer is shredded, too.
TransactionEnd SealedTransactions::run(InTransaction what) {
  std::string scope;
  Ring ring;
  if (keys_.seals()) {
    auto of_record = scope_for(what);
    if (!of_record) return std::move(of_record.error());
    scope = std::move(*of_record);
    if (scoped_.is_on()) {
      const RecordId of = what.reserve ? what.reserve->id : what.id;
      ring = scoped_.scope_keys()->cached(scope_key_prefix(scope));
      auto read = ring ? std::expected<Ring, StoreError>(ring) : read_keys(scope, of);
      if (!read) {
        return ended(How::unavailable, std::move(read.error().detail), read.error().record);
      }
      ring = std::move(*read);
    }
    const NamedKey* const key = ring ? &ring->keys.front() : &keys_.newest();
    what.work = [key, &scope, work = std::move(what.work)](
                    Transaction& transaction, const RecordId& id, const Attempt& attempt) mutable {
      auto step = work(transaction, id, attempt);
      auto* const complete = step ? std::get_if<Complete>(&*step) : nullptr;
      if (complete != nullptr) {
        seal_answer(*key, {scope, id, attempt.fence}, complete->response);
      }
      return step;
    };
  }
  TransactionEnd end = transactions_.run(std::move(what));
  if (!end.reserved) return end;
  auto* const replay = std::get_if<Replay>(&*end.reserved);
  if (replay == nullptr) return end;
  const auto opened = open(*replay, scope);
  if (opened) return end;
  return ended(How::unavailable, opened.error().detail, opened.error().record);
}

std::expected<SqlRows, std::string> SealedTransactions::run_internal(
    InternalStatement which, std::span<const SqlValue> values) {
  return InternalSql::run(transactions_, which, values);
}

}  // namespace idem
