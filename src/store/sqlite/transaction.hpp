#pragma once

#include "store/call_queue.hpp"
#include "store/sqlite/service_sql.hpp"

#include <idem/transaction.hpp>

#include <exception>
#include <functional>

namespace idem::sqlite {

/// What a store that has lost its file says instead.
class FileTask : public StoreTask {
 public:
  /// It was not run.
  virtual void refuse(const std::string& why) = 0;
  /// It was, and was committed to a file that no start will find.
  virtual void lose(const std::string& why) = 0;
};

/// One InTransaction on its way through the store's thread.
///
/// It lies between the steps of a batch, in a savepoint of the batch's transaction: what the work
/// wrote is kept with the step that ends the attempt, or undone before that step is made. Steps
/// keep things in memory that no savepoint undoes, so one that changed something is never undone.
class TransactionTask final : public FileTask {
 public:
  /// Does one of the store's steps in the batch's transaction.
  using Step = std::function<StoreResult(StoreCall&)>;

  explicit TransactionTask(InTransaction what) : what_(std::move(what)) {}

  bool reserves() const noexcept { return what_.reserve.has_value(); }

  /// On the store's thread, within the batch's transaction. Ends the process where the work ended
  /// that: other callers' steps were in it.
  void run(ServiceSql& sql, const Step& step);

  void refuse(const std::string& why) override { end = {.why = why}; }
  void lose(const std::string& why) override;

  TransactionEnd end{};         ///< Counts once the batch was committed.
  std::exception_ptr thrown{};  ///< What the work threw; it was rolled back.
  bool granted = false;         ///< It reserved.
  bool is_taken_up = false;     ///< What another attempt had begun, in phases.
  /// What it did to the record, for those who hear of changes.
  std::optional<std::pair<StoreCall, StoreResult>> told{};

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
