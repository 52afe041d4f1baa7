#pragma once

#include "store/call_queue.hpp"
#include "store/sqlite/service_sql.hpp"

#include <idem/transaction.hpp>

#include <exception>
#include <functional>

namespace idem::sqlite {

/// A service's SQL on the store's thread, within the batch's transaction.
class ServiceTask : public StoreTask {
 public:
  /// `step` makes one of the store's steps in the batch's transaction.
  using Step = std::function<StoreResult(StoreCall&)>;
  virtual void run(ServiceSql& sql, const Step& step) = 0;
};

/// Runs one InTransaction on the store's thread.
///
/// It runs between the steps of a batch, in a savepoint of the batch's transaction: the work's rows
/// are kept together with the step that ends the attempt, or undone before that step. Steps change
/// memory that no savepoint undoes, so a step that changed something is never undone.
class TransactionTask final : public ServiceTask {
 public:
  explicit TransactionTask(InTransaction what) : what_(std::move(what)) {}

  bool reserves() const noexcept override { return what_.reserve.has_value(); }
  bool settles() const noexcept override { return true; }

  /// Aborts the process if the work ended the batch's transaction: it contained other callers'
  /// steps.
  void run(ServiceSql& sql, const Step& step) override;

  void refuse(const std::string& why) override { end = {.why = why}; }
  void lose(const std::string& why) override;
  const Change* change() const noexcept override { return changed_by_ ? &*changed_by_ : nullptr; }

  TransactionEnd end{};         ///< Valid once the batch is committed.
  std::exception_ptr thrown{};  ///< The work's exception; the work was rolled back.
  bool granted = false;         ///< Its reserve was granted.
  bool is_taken_up = false;     ///< It goes on with phases that another attempt began.

 private:
  bool find_attempt(const Step& step);
  void work(ServiceSql& sql, const Step& step);
  void give_back(const Step& step, std::string why);

  InTransaction what_;
  std::optional<Change> changed_by_;
};

/// One statement for Transactions::run(sql, values), in a savepoint of its own.
class StatementTask final : public ServiceTask {
 public:
  enum class Whose : std::uint8_t { service, ours };
  StatementTask(Whose whose, std::string_view sql, std::span<const SqlValue> values)
      : whose_(whose), sql_(sql), values_(values) {}

  void run(ServiceSql& sql, const Step& step) override;
  void refuse(const std::string& why) override { result = std::unexpected(why); }
  void lose(const std::string& why) override { result = std::unexpected(why); }

  std::expected<SqlRows, std::string> result{};

 private:
  Whose whose_;
  std::string_view sql_;
  std::span<const SqlValue> values_;
};

}  // namespace idem::sqlite
