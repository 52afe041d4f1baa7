#include "loop/loop.hpp"

#include "core/bytes/last_words.hpp"
#include "loop/asio.hpp"

#include <idem/assert.hpp>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include <pthread.h>

#include <exception>
#include <memory>
#include <string>

namespace idem {

using boost::system::error_code;

namespace {

/// One of a loop's running coroutines, until it ends or is dropped.
class Counted {
 public:
  explicit Counted(std::atomic<std::size_t>& running) : running_(running) {
    running_.fetch_add(1, std::memory_order_acq_rel);
  }
  ~Counted() { running_.fetch_sub(1, std::memory_order_acq_rel); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<std::size_t>& running_;
};

/// An exception here is out of memory in a coroutine's body, or a bug. The coroutine's
/// reservation stays in the store until its lease ends, which is the safe ending.
Task<void> report_escaped(Task<void> task) {
  try {
    co_await std::move(task);
  } catch (const std::exception& e) {
    write_stderr_line(std::string("idem: a request ended by an exception: ") + e.what());
  } catch (...) {
    write_stderr_line("idem: a request ended by an exception");
  }
}

// The frame of the task is gone before it is counted as ended.
Root run_counted(std::unique_ptr<Counted> counted, Task<void> task) {
  {
    Task<void> reporting = report_escaped(std::move(task));
    co_await std::move(reporting);
  }
  counted.reset();
}

Root run_uncounted(Task<void> task) {
  Task<void> reporting = report_escaped(std::move(task));
  co_await std::move(reporting);
}

}  // namespace

Timed::Timed(Loop& loop) : loop_(loop), slot_(loop.timed_.size()) { loop.timed_.push_back(this); }

Timed::~Timed() {
  auto& all = loop_.timed_;
  all[slot_] = all.back();
  all[slot_]->slot_ = slot_;
  all.pop_back();
}

struct Loop::Reactor {
  asio::io_context context{1};
  LoopTimer ticker{context};
};

/// Has jobs for the loop.
struct Loop::Mailbox final : Sleeper {
  explicit Mailbox(Loop& of) : loop(of) {}
  void wake() noexcept override {
    asio::post(loop.context(), [to = &loop] { to->drain_mailbox(); });
  }
  Loop& loop;
};

/// Ends once what was ready is done: asio appends the posted handler to it.
class Loop::LoopTurn final : public Turn {
 public:
  explicit LoopTurn(Loop& loop) : loop_(loop) {}

 protected:
  void has_begun() override {
    asio::post(loop_.context(), [this] { end(); });
  }

 private:
  Loop& loop_;
};

Loop::Loop() : reactor_(std::make_unique<Reactor>()), bell_(std::make_shared<Mailbox>(*this)) {}
Loop::~Loop() = default;

asio::io_context& Loop::context() noexcept { return reactor_->context; }

void Loop::post(Job job) {
  bool wake = false;
  {
    std::lock_guard lock(mailbox_mutex_);
    wake = mailbox_.empty();
    mailbox_.push_back(std::move(job));
  }
  if (!wake) return;
  if (context().get_executor().running_in_this_thread()) {
    bell_->wake();
  } else {
    Turn::wake_at_end(bell_);
  }
}

void Loop::drain_mailbox() {
  IDEM_ASSERT(draining_.empty());
  {
    std::lock_guard lock(mailbox_mutex_);
    draining_.swap(mailbox_);
  }
  for (auto& job : draining_) job();
  draining_.clear();
}

void Loop::spawn(Task<void> task) {
  auto counted = std::make_unique<Counted>(running_);
  asio::dispatch(context(), run_counted(std::move(counted), std::move(task)));
}

void Loop::spawn_beside(Task<void> task) {
  asio::dispatch(context(), run_uncounted(std::move(task)));
}

Task<void> Loop::sleep(Millis duration) {
  LoopTimer timer(context(), duration);
  const auto start = [&](Resumption<error_code> timed) { timer.async_wait(std::move(timed)); };
  auto waiting = suspend<error_code>(start);
  co_await waiting;
}

void Loop::run(const char* thread_name) {
  ::pthread_setname_np(::pthread_self(), thread_name);
  arm_tick();
  LoopTurn turn(*this);
  context().run();
}

void Loop::stop() { context().stop(); }

void Loop::arm_tick() {
  reactor_->ticker.expires_after(tick_interval);
  reactor_->ticker.async_wait([this](const error_code& error) {
    if (error) return;
    tick();
    arm_tick();
  });
}

void Loop::tick() {
  ticks_.fetch_add(1, std::memory_order_relaxed);
  const MonotonicTime now = MonotonicClock::now();
  for (std::size_t i = 0; i < timed_.size(); ++i) timed_[i]->tick(now);
}

}  // namespace idem
