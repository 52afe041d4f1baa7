#pragma once

#include "cli/log/process_log.hpp"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

/// No thread that waits for a disk or a server that hangs can be ended alone, nor joined. So the
/// process ends as by kill -9, which loses nothing that was answered.
namespace idem::cli {

/// During its life a start that hangs says so in the log, and SIGTERM and SIGINT end the process
/// although the main thread does not wait for them. A start that ends within limits::hang_end_max
/// after the signal finds it pending.
class StartWatch {
 public:
  /// After block_signals().
  explicit StartWatch(ProcessLog& log);
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

 private:
  void watch();

  ProcessLog& log_;
  int signal_came_;
  int started_;
  std::thread thread_;
};

/// During its life the process ends after limits::hang_end_max if the store does not answer, and
/// after limits::end_time_max in any case.
class EndWatch {
 public:
  /// `store_answers` is called on a thread of its own.
  EndWatch(ProcessLog& log, std::function<bool()> store_answers);
  ~EndWatch();
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

 private:
  void watch();

  ProcessLog& log_;
  const std::function<bool()> store_answers_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace idem::cli
