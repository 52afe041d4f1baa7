#pragma once

#include "core/record/store_clock.hpp"
#include "store/call_queue.hpp"

#include <functional>
#include <string>

namespace idem::embedded {

/// Where a ledger keeps its table, and what the table's transactions are made of. Used by one
/// thread. It fails closed: a write of which nobody knows whether it is durable ends the process.
class Medium {
 public:
  virtual ~Medium() = default;

  /// Begins a transaction; `now` is the time of all of its steps.
  virtual void begin(StoreTime now) = 0;
  /// Whether the transaction that commit() ends, or ended last, changed anything.
  virtual bool has_written() const = 0;
  /// What the transaction wrote is durable when it returns.
  virtual void commit() = 0;

  /// Why what the step under way has read is not all that there is, if it is not: something on the
  /// medium is damaged. Asked once after each step.
  virtual std::optional<StoreError> take_damage() { return std::nullopt; }

  // Written with the transaction.
  virtual void put_highest_fence(Fence fence) = 0;
  virtual void put_clock_mark(const ClockMark& mark) = 0;
  virtual void put_closed() = 0;

  /// Runs the work of a service between two steps of the transaction; it may make steps.
  using Step = std::function<StoreResult(StoreCall&)>;
  virtual void run(StoreTask& task, const Step& step) = 0;

  /// Empty: the next start finds what was committed. Otherwise a sentence.
  virtual std::string what_is_lost() = 0;
  /// Work that no answer has to wait for, after the answers of each batch.
  virtual void tidy() = 0;
  /// After the last transaction.
  virtual void close() = 0;
};

}  // namespace idem::embedded
