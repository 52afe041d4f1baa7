#pragma once

#include <idem/assert.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

/// Coroutines of one loop's thread. A Task begins when it is awaited and belongs to the coroutine
/// that awaits it; a spawned coroutine is the root of such a chain. A coroutine that waits for an
/// event from outside gives a Resumption away: the holder of that owns the whole chain.
///
/// A Task that ends without having waited returns straight to its caller: no stack grows in a loop
/// over such calls, with or without tail calls.
///
/// GCC 12 miscompiles capturing lambdas, temporaries with destructors and braced aggregates as
/// arguments inside a co_await expression, and drops the body of a coroutine that has one in the
/// condition of an if, a while or a switch, without a warning: name the operand, and the result,
/// first.
namespace idem {

template <class T>
class Task;

/// Frames come from lists of the thread, one for each size, and go back to the lists of the thread
/// on which they end, so that requests reuse each other's frames. A thread keeps at most so much.
inline constexpr std::size_t kept_frame_bytes_max = 512UL * 1024;
void* take_frame(std::size_t bytes);
void give_frame(void* frame, std::size_t bytes) noexcept;
/// What the calling thread keeps now.
std::size_t kept_frame_bytes() noexcept;

class Frame {
 public:
  static void* operator new(std::size_t bytes) { return take_frame(bytes); }
  static void operator delete(void* frame, std::size_t bytes) noexcept { give_frame(frame, bytes); }
};

/// Part of every promise of a chain.
struct Link : Frame {
  std::coroutine_handle<> root;
};

struct TaskLink : Link {
  std::coroutine_handle<> awaiting;
  bool waited = false;  ///< So its caller is suspended, and is resumed at the end.
  std::exception_ptr error;

  struct End {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      const TaskLink& link = ended.promise();
      if (link.waited) link.awaiting.resume();  // Which destroys the frame of this one.
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  End final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }
};

template <class T>
struct TaskPromise : TaskLink {
  std::optional<T> value;
  Task<T> get_return_object() noexcept;
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() { return std::move(*value); }
};

template <>
struct TaskPromise<void> : TaskLink {
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const noexcept {}
};

/// A moved-from Task is empty; assigning swaps. Awaited once at most; an exception that escapes it
/// is thrown from the `co_await`.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = TaskPromise<T>;

  explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~Task() {
    if (frame_) frame_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) noexcept {
    TaskLink& link = frame_.promise();
    link.root = awaiting.promise().root;
    link.awaiting = awaiting;
    frame_.resume();
    if (frame_.done()) return false;
    link.waited = true;
    return true;
  }
  T await_resume() {
    promise_type& promise = frame_.promise();
    if (promise.error) std::rethrow_exception(std::move(promise.error));
    return promise.take();
  }

 private:
  std::coroutine_handle<promise_type> frame_;
};

template <class T>
Task<T> TaskPromise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}

inline Task<void> TaskPromise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

/// A coroutine without a caller. Start or drop it once; from its first wait on it belongs to the
/// Resumption. No exception may escape it.
class Root {
 public:
  struct promise_type : Link {
    Root get_return_object() noexcept {
      root = std::coroutine_handle<promise_type>::from_promise(*this);
      return Root(root);
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };

  Root(Root&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Root& operator=(Root&&) = delete;
  ~Root() {
    if (frame_) frame_.destroy();
  }
  void operator()() { std::exchange(frame_, nullptr).resume(); }

 private:
  explicit Root(std::coroutine_handle<> frame) noexcept : frame_(frame) {}
  std::coroutine_handle<> frame_;
};

/// A suspended coroutine, as its event sees it.
template <class Value>
struct Suspension {
  std::coroutine_handle<> leaf;
  std::coroutine_handle<> root;
  std::optional<Value> value{};
  bool starting = false;
};

/// The right to resume a suspended coroutine, once, on its loop's thread and not from within the
/// call that got it. Dropped unused it destroys the coroutine with all its callers, as happens when
/// a loop ends before an event comes.
template <class Value>
class Resumption {
 public:
  explicit Resumption(Suspension<Value>& of) noexcept : of_(&of) {}
  Resumption(Resumption&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  Resumption& operator=(Resumption&&) = delete;
  ~Resumption() {
    if (of_ == nullptr) return;
    IDEM_ASSERT(!of_->starting);
    of_->root.destroy();
  }

  /// Any thread, before go_on().
  template <class... Parts>
  void put(Parts&&... parts) {
    of_->value.emplace(std::forward<Parts>(parts)...);
  }
  void go_on() { std::exchange(of_, nullptr)->leaf.resume(); }

  template <class... Parts>
  void operator()(Parts&&... parts) {
    put(std::forward<Parts>(parts)...);
    go_on();
  }

 private:
  Suspension<Value>* of_;
};

/// `co_await` of a named one suspends the coroutine, calls `start` with its Resumption<Value>, and
/// gives the value with which that is called, which lies in the named Wait: `auto` moves it out,
/// and `const auto&` leaves it there. `start` may not drop the Resumption. If `start` runs out of
/// memory the process ends, because it is then not known who owns the Resumption.
template <class Value, class Start>
class Wait {
 public:
  explicit Wait(Start start) noexcept : start_(std::move(start)) {}
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() = default;

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> leaf) noexcept {
    state_.leaf = leaf;
    state_.root = leaf.promise().root;
    state_.starting = true;
    start_(Resumption<Value>(state_));
    state_.starting = false;
  }
  Value&& await_resume() { return std::move(*state_.value); }

 private:
  Suspension<Value> state_;
  Start start_;
};

template <class Value, class Start>
Wait<Value, Start> suspend(Start start) noexcept {
  return Wait<Value, Start>(std::move(start));
}

}  // namespace idem
