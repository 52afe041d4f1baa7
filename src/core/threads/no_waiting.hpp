#pragma once

#include <string_view>

namespace idem {

/// During its lifetime a wait for a store on this thread would never end, so such a wait is refused
/// (why_not_to_wait() in <idem/store_wait.hpp>). Of nested ones the inner one counts.
class NoWaiting {
 public:
  /// `why`: static text, a sentence that says what to do instead.
  explicit NoWaiting(std::string_view why) noexcept;
  ~NoWaiting();
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;

 private:
  std::string_view before_;
};

/// For the thread of a store.
inline constexpr std::string_view is_store_thread =
    "a wait for a store on a store's own thread would never end: hand the work to another thread, "
    "or ask with a completion";

}  // namespace idem
