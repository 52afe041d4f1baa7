#pragma once

#include <idem/callback_guard.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>

/// @file
/// A guard for coroutines on Boost.Asio (1.81 and later). Header-only, and the only header that
/// includes Asio. A request blocks no thread; transactions run on a few threads of the engine's.
namespace idem::inline v0_1 {

namespace asio_glue {

/// What the coroutines of one execution context wait for. The engine's threads refer to this and
/// not to the context, which may be destroyed first: then they find no waiter here.
class Waiters {
 public:
  class One {
   public:
    virtual ~One() = default;
  };

  /// Returns its key; 0: the context is ending, and `one` was destroyed.
  std::uint64_t add(std::unique_ptr<One> one) {
    const std::lock_guard lock(mutex_);
    if (is_over_) return 0;
    ones_.emplace(++last_, std::move(one));
    return last_;
  }

  /// Hands the waiter to `resume`, which must do no more than post. False: it was taken or dropped.
  template <class Which, class Resume>
  bool take(std::uint64_t key, Resume resume) {
    const std::lock_guard lock(mutex_);
    const auto found = ones_.find(key);
    if (found == ones_.end()) return false;
    const auto one = std::move(found->second);
    ones_.erase(found);
    resume(static_cast<Which&>(*one));
    return true;
  }

  /// Drops a waiter that no thread will resume. On the context's own thread.
  void drop(std::uint64_t key) {
    std::unique_lock lock(mutex_);
    const auto one = ones_.extract(key);
    lock.unlock();  // Destroying it runs the caller's code.
  }

  /// Wraps `work`, which may refer to a coroutine's variables: end() waits until it is destroyed.
  static TransactionWork kept(const std::shared_ptr<Waiters>& self, TransactionWork work) {
    {
      const std::lock_guard lock(self->mutex_);
      ++self->works_;
    }
    std::shared_ptr<void> leaving(nullptr, [self](void*) {
      const std::lock_guard lock(self->mutex_);
      --self->works_;
      self->idle_.notify_all();
    });
    struct Work {
      std::shared_ptr<void> leaving;
      TransactionWork work;  // Destroyed first.
      Outcome operator()(Transaction& transaction) const { return work(transaction); }
    };
    return Work{std::move(leaving), std::move(work)};
  }

  void end() {
    std::map<std::uint64_t, std::unique_ptr<One>> ones;
    std::unique_lock lock(mutex_);
    is_over_ = true;
    idle_.wait(lock, [this] { return works_ == 0; });
    ones.swap(ones_);
    lock.unlock();  // Their destructors may call the engine, and the engine this object.
  }

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  std::map<std::uint64_t, std::unique_ptr<One>> ones_;
  std::uint64_t last_ = 0;
  std::size_t works_ = 0;
  bool is_over_ = false;
};

class Service final : public boost::asio::execution_context::service {
 public:
  using key_type = Service;
  static inline boost::asio::execution_context::id id;

  explicit Service(boost::asio::execution_context& context)
      : boost::asio::execution_context::service(context) {}

  std::shared_ptr<Waiters> waiters = std::make_shared<Waiters>();

 private:
  void shutdown() override { waiters->end(); }
};

inline std::shared_ptr<Waiters> waiters_of(const boost::asio::any_io_executor& executor) {
  auto& context = boost::asio::query(executor, boost::asio::execution::context);
  return boost::asio::use_service<Service>(context).waiters;
}

/// A coroutine's continuation, which keeps its context running.
template <class Continuation, class... Results>
class Waiting final : public Waiters::One {
 public:
  explicit Waiting(Continuation continuation)
      : executor_(boost::asio::get_associated_executor(continuation)),
        work_(executor_),
        continuation_(std::move(continuation)) {}

  void post(Results... results) {
    boost::asio::post(executor_, Resume{std::move(continuation_), {std::move(results)...}});
  }

 private:
  using Executor = boost::asio::associated_executor_t<Continuation>;
  struct Resume {
    Continuation continuation;
    std::tuple<Results...> results;
    void operator()() { std::apply(std::move(continuation), std::move(results)); }
  };

  Executor executor_;
  boost::asio::executor_work_guard<Executor> work_;
  Continuation continuation_;
};

/// Adds the continuation, and passes `begin` the function that resumes it.
template <class... Results, class Continuation, class Begin>
void wait(const std::shared_ptr<Waiters>& waiters, Continuation&& continuation, Begin begin) {
  using Which = Waiting<std::decay_t<Continuation>, Results...>;
  const auto key = waiters->add(std::make_unique<Which>(std::forward<Continuation>(continuation)));
  if (key == 0) return;
  begin([waiters, key](Results... results) {
    waiters->template take<Which>(key, [&](Which& one) { one.post(std::move(results)...); });
  });
}

using Token = boost::asio::use_awaitable_t<>;

}  // namespace asio_glue

/// A handler's right to execute. Valid while the handler runs.
class AsyncExecution {
 public:
  /// The guard makes it.
  AsyncExecution(std::shared_ptr<HandlerTurn> turn, std::shared_ptr<asio_glue::Waiters> waiters)
      : turn_(std::move(turn)), waiters_(std::move(waiters)) {}
  AsyncExecution(const AsyncExecution&) = delete;
  AsyncExecution& operator=(const AsyncExecution&) = delete;

  /// As Execution::id().
  const RecordId& id() const noexcept { return turn_->id(); }
  /// As Execution::attempt().
  const Attempt& attempt() const noexcept { return turn_->attempt(); }
  /// As Execution::lease_left().
  [[nodiscard]] Millis lease_left() const { return turn_->lease_left(); }

  /// As Execution::commit(), on a thread of the engine's; resumes on the caller's executor. `work`
  /// is copied, and may refer to the coroutine's variables. With GCC 12 name it first: a lambda
  /// within the co_await expression is destroyed twice.
  [[nodiscard]] boost::asio::awaitable<Outcome> commit(const TransactionWork& work) {
    asio_glue::Token token;
    return boost::asio::async_initiate<asio_glue::Token, void(std::exception_ptr, Outcome)>(
        BeginCommit{}, token, turn_, waiters_, work);
  }

 private:
  struct BeginCommit {
    template <class Continuation>
    void operator()(Continuation&& continuation, const std::shared_ptr<HandlerTurn>& turn,
                    const std::shared_ptr<asio_glue::Waiters>& waiters,
                    TransactionWork work) const {
      asio_glue::wait<std::exception_ptr, Outcome>(
          waiters, std::forward<Continuation>(continuation), [&](auto resume) {
            turn->commit(asio_glue::Waiters::kept(waiters, std::move(work)), std::move(resume));
          });
    }
  };

  std::shared_ptr<HandlerTurn> turn_;
  std::shared_ptr<asio_glue::Waiters> waiters_;
};

namespace asio_glue {

/// A turn on its way to the executor. If it never arrives, nothing ran.
class Arriving {
 public:
  explicit Arriving(std::shared_ptr<HandlerTurn> turn) : turn_(std::move(turn)) {}
  Arriving(Arriving&&) = default;
  Arriving& operator=(Arriving&&) = delete;
  ~Arriving() {
    if (turn_) turn_->finish(NotExecuted{{503, {{"Retry-After", "1"}}, {}}});
  }
  std::shared_ptr<HandlerTurn> arrive() { return std::move(turn_); }
  Millis lease_left() const { return turn_->lease_left(); }

 private:
  std::shared_ptr<HandlerTurn> turn_;
};

/// Runs the handler. If the context destroys this coroutine, the turn's outcome is unknown.
template <class Handler>
boost::asio::awaitable<void> run(std::shared_ptr<HandlerTurn> turn,
                                 std::shared_ptr<Waiters> waiters, Handler handler) {
  AsyncExecution execution(turn, std::move(waiters));
  try {
    auto running = handler(turn->request(), execution);
    Outcome outcome = co_await std::move(running);
    turn->finish(std::move(outcome));
  } catch (...) {
    turn->threw();
  }
}

/// A handler that waits for its turn, with the executor to run it on.
template <class Handler>
class Starting final : public Waiters::One {
 public:
  Starting(boost::asio::any_io_executor executor, Handler handler)
      : executor_(std::move(executor)), handler_(std::move(handler)) {}

  void post(Arriving arriving, std::shared_ptr<Waiters> waiters) {
    boost::asio::post(
        executor_, Start{executor_, std::move(arriving), std::move(waiters), std::move(handler_)});
  }

 private:
  struct Start {
    boost::asio::any_io_executor executor;
    Arriving arriving;
    std::shared_ptr<Waiters> waiters;
    Handler handler;
    void operator()() {
      // The executor may have been busy or stopped for longer than the lease, and another attempt
      // may execute by now. The destructor of `arriving` reports "not executed".
      if (arriving.lease_left() <= Millis{0}) return;
      auto running = run(arriving.arrive(), std::move(waiters), std::move(handler));
      boost::asio::co_spawn(executor, std::move(running), boost::asio::detached);
    }
  };

  boost::asio::any_io_executor executor_;
  Handler handler_;
};

}  // namespace asio_glue

/// Serves one operation for coroutines, by the same rules as Guard. Safe from any thread.
///
/// The handler is a coroutine of its own on the caller's executor. To cancel the caller (its client
/// hung up) does not affect the handler; the caller receives the answer before the cancellation.
///
/// To destroy an execution context destroys its coroutines: an attempt that had begun is settled as
/// unknown, one that had not as not executed. Destroy a stopped context before the engine, which
/// otherwise waits for its handlers until GuardOptions::run_max is over. A context's destructor
/// waits for running transactions with work of its coroutines.
class AwaitableGuard {
 public:
  /// As Guard's constructor.
  AwaitableGuard(Engine& engine, GuardOptions options) : guard_(engine, std::move(options)) {}

  /// `handler`: `awaitable<Outcome>(const Request&, AsyncExecution&)`, otherwise as Handler; both
  /// are copied, or moved from. Returns the client's answer, on the caller's executor.
  template <class Handler>
  [[nodiscard]] boost::asio::awaitable<Response> serve(const Request& request, Handler&& handler) {
    return serve_own(request, std::decay_t<Handler>(std::forward<Handler>(handler)));
  }
  /// The same; the request is moved from.
  template <class Handler>
  [[nodiscard]] boost::asio::awaitable<Response> serve(Request&& request, Handler&& handler) {
    return serve_own(std::move(request), std::decay_t<Handler>(std::forward<Handler>(handler)));
  }

  /// As Guard::serve_in_transaction(). `work` is copied, and may refer to the caller's variables.
  [[nodiscard]] boost::asio::awaitable<Response> serve_in_transaction(const Request& request,
                                                                      const TransactionWork& work) {
    return commit_own(request, work);
  }

 private:
  template <class Handler>
  boost::asio::awaitable<Response> serve_own(Request request, Handler handler) {
    using Starting = asio_glue::Starting<Handler>;
    const auto executor = co_await boost::asio::this_coro::executor;
    const auto waiters = asio_glue::waiters_of(executor);
    const auto key = waiters->add(std::make_unique<Starting>(executor, std::move(handler)));
    CallbackHandler start = [waiters, key](std::shared_ptr<HandlerTurn> turn) {
      asio_glue::Arriving arriving(std::move(turn));
      waiters->template take<Starting>(
          key, [&](Starting& one) { one.post(std::move(arriving), waiters); });
    };
    asio_glue::Token token;
    auto answering = boost::asio::async_initiate<asio_glue::Token, void(Response)>(
        BeginServing{}, token, &guard_, waiters, std::move(request), std::move(start));
    Response answer = co_await std::move(answering);
    waiters->drop(key);  // If the handler did not run.
    co_return answer;
  }

  boost::asio::awaitable<Response> commit_own(Request request, TransactionWork work) {
    const auto executor = co_await boost::asio::this_coro::executor;
    const auto waiters = asio_glue::waiters_of(executor);
    asio_glue::Token token;
    auto answering = boost::asio::async_initiate<asio_glue::Token, void(Response)>(
        BeginTransaction{}, token, &guard_, waiters, std::move(request), std::move(work));
    Response answer = co_await std::move(answering);
    co_return answer;
  }

  struct BeginServing {
    template <class Continuation>
    void operator()(Continuation&& continuation, CallbackGuard* guard,
                    const std::shared_ptr<asio_glue::Waiters>& waiters, Request request,
                    CallbackHandler start) const {
      asio_glue::wait<Response>(
          waiters, std::forward<Continuation>(continuation), [&](auto resume) {
            guard->serve(std::move(request), std::move(start), std::move(resume));
          });
    }
  };
  struct BeginTransaction {
    template <class Continuation>
    void operator()(Continuation&& continuation, CallbackGuard* guard,
                    const std::shared_ptr<asio_glue::Waiters>& waiters, Request request,
                    TransactionWork work) const {
      asio_glue::wait<Response>(
          waiters, std::forward<Continuation>(continuation), [&](auto resume) {
            guard->serve_in_transaction(std::move(request),
                                        asio_glue::Waiters::kept(waiters, std::move(work)),
                                        std::move(resume));
          });
    }
  };

  CallbackGuard guard_;
};

}  // namespace idem::inline v0_1
