#include "core/threads/no_waiting.hpp"

#include <idem/store_wait.hpp>

namespace idem {
namespace {

thread_local std::string_view reason;

}  // namespace

NoWaiting::NoWaiting(std::string_view why) noexcept : before_(reason) { reason = why; }
NoWaiting::~NoWaiting() { reason = before_; }

inline namespace v0_1 {

std::string_view why_not_to_wait() noexcept { return reason; }

}  // namespace v0_1

}  // namespace idem
