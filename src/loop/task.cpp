#include "loop/task.hpp"

#include <array>
#include <new>

namespace idem {
namespace {

#ifndef __has_feature
#define __has_feature(name) 0
#endif

// Without the pool, AddressSanitizer (of clang and of GCC) sees uses of a frame after its end.
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr bool pooled = false;
#else
constexpr bool pooled = true;
#endif

constexpr std::size_t step = 128;
constexpr std::size_t largest = 8192;

class FrameLists {
 public:
  constexpr FrameLists() = default;
  FrameLists(const FrameLists&) = delete;
  FrameLists& operator=(const FrameLists&) = delete;
  ~FrameLists() {
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      while (void* frame = pop(i)) ::operator delete(frame, size_of(i));
    }
  }

  void* take(std::size_t bytes) {
    const std::size_t i = index_of(bytes);
    void* frame = pop(i);
    return frame != nullptr ? frame : ::operator new(size_of(i));
  }

  std::size_t kept() const noexcept { return kept_; }

  void give(void* frame, std::size_t bytes) noexcept {
    const std::size_t i = index_of(bytes);
    if (kept_ + size_of(i) > kept_frame_bytes_max) return ::operator delete(frame, size_of(i));
    lists_[i] = new (frame) Free{lists_[i]};
    kept_ += size_of(i);
  }

 private:
  struct Free {
    Free* next;
  };

  static std::size_t index_of(std::size_t bytes) noexcept { return (bytes - 1) / step; }
  static std::size_t size_of(std::size_t index) noexcept { return (index + 1) * step; }

  void* pop(std::size_t index) noexcept {
    Free* const first = lists_[index];
    if (first == nullptr) return nullptr;
    lists_[index] = first->next;
    kept_ -= size_of(index);
    return first;
  }

  std::array<Free*, largest / step> lists_{};
  std::size_t kept_ = 0;
};

constinit thread_local FrameLists lists;

}  // namespace

void* take_frame(std::size_t bytes) {
  return pooled && bytes <= largest ? lists.take(bytes) : ::operator new(bytes);
}

void give_frame(void* frame, std::size_t bytes) noexcept {
  if (pooled && bytes <= largest) return lists.give(frame, bytes);
  ::operator delete(frame, bytes);
}

std::size_t kept_frame_bytes() noexcept { return lists.kept(); }

}  // namespace idem
