#pragma once

#include "store/call_queue.hpp"
#include "store/sqlite/service_sql.hpp"

#include <idem/transaction.hpp>

#include <exception>
#include <functional>

namespace idem::sqlite {

/// A task that a store without its file refuses, or answers as lost.
class FileTask : public StoreTask {
 public:
  /// The task did not run.
  virtual void refuse(const std::string& why) = 0;
  /// The task ran, and its commit is in a file that no start will find.
  virtual void lose(const std::string& why) = 0;
};

/// Runs one InTransaction on the store's thread.
///
/// It runs between the steps of a batch, in a savepoint of the batch's transaction: the work's rows
/// are kept together with the step that ends the attempt, or undone before that step. Steps change
/// memory that no savepoint undoes, so a step that changed something is never undone.
class TransactionTask final : public FileTask {
 public:
  /// Makes one of the store's steps in the batch's transaction.
  using Step = std::function<StoreResult(StoreCall&)>;

  explicit TransactionTask(InTransaction what) : what_(std::move(what)) {}

  bool reserves() const noexcept { return what_.reserve.has_value(); }

  /// On the store's thread, within the batch's transaction. Aborts the process if the work ended
  /// that transaction: it contained other callers' steps.
  void run(ServiceSql& sql, const Step& step);

  void refuse(const std::string& why) override { end = {.why = why}; }
  void lose(const std::string& why) override;

  TransactionEnd end{};         ///< Valid once the batch is committed.
  std::exception_ptr thrown{};  ///< The work's exception; the work was rolled back.
  bool granted = false;         ///< Its reserve was granted.
  bool is_taken_up = false;     ///< It goes on with phases that another attempt began.
  /// The call that changed the record, and its result: for the watcher.
  std::optional<std::pair<StoreCall, StoreResult>> changed_by{};

 private:
  bool find_attempt(const Step& step);
  void work(ServiceSql& sql, const Step& step);
  void give_back(const Step& step, std::string why);

  InTransaction what_;
};

/// One statement for Transactions::run(sql, values), in a savepoint of its own.
class StatementTask final : public FileTask {
 public:
  enum class Whose : std::uint8_t { service, ours };
  StatementTask(Whose whose, std::string_view sql, std::span<const SqlValue> values)
      : whose_(whose), sql_(sql), values_(values) {}

  void run(ServiceSql& sql);
  void refuse(const std::string& why) override { result = std::unexpected(why); }
  void lose(const std::string& why) override { result = std::unexpected(why); }

  std::expected<SqlRows, std::string> result{};

 private:
  Whose whose_;
  std::string_view sql_;
  std::span<const SqlValue> values_;
};

}  // namespace idem::sqlite
