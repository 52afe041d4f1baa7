#include "http/loop.hpp"

#include <idem/assert.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <pthread.h>

#include <cstdio>
#include <exception>

namespace idem::http {
namespace {

void report_escaped(const std::exception_ptr& error) {
  // An exception here is out of memory or a bug. What the coroutine had reserved stays in the store
  // and its lease runs out, which is the safe ending.
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "idem: a request ended by an exception: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "idem: a request ended by an exception\n");
  }
}

}  // namespace

Timed::Timed(Loop& loop) : loop_(loop), slot_(loop.timed_.size()) { loop.timed_.push_back(this); }

Timed::~Timed() {
  auto& all = loop_.timed_;
  all[slot_] = all.back();
  all[slot_]->slot_ = slot_;
  all.pop_back();
}

Loop::Loop() = default;
Loop::~Loop() = default;

void Loop::post(Job job) {
  bool wake = false;
  {
    std::lock_guard lock(mailbox_mutex_);
    wake = mailbox_.empty();
    mailbox_.push_back(std::move(job));
  }
  if (wake) asio::post(context_, [this] { drain_mailbox(); });
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
  running_.fetch_add(1, std::memory_order_acq_rel);
  asio::co_spawn(context_, std::move(task), [this](const std::exception_ptr& error) {
    if (error) report_escaped(error);
    running_.fetch_sub(1, std::memory_order_acq_rel);
  });
}

Task<void> Loop::sleep(Millis duration) {
  Timer timer(context_, duration);
  co_await timer.async_wait(resume);
}

void Loop::run(const char* thread_name) {
  ::pthread_setname_np(::pthread_self(), thread_name);
  arm_tick();
  context_.run();
}

void Loop::stop() { context_.stop(); }

void Loop::arm_tick() {
  ticker_.expires_after(tick_interval);
  ticker_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    tick();
    arm_tick();
  });
}

void Loop::tick() {
  const MonotonicTime now = MonotonicClock::now();
  for (std::size_t i = 0; i < timed_.size(); ++i) timed_[i]->tick(now);
}

}  // namespace idem::http
