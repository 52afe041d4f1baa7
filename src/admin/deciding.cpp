#include "admin/deciding.hpp"

#include "admin/audit/audit_trail.hpp"
#include "admin/replies.hpp"

#include <idem/crash_point.hpp>

namespace idem::admin {

Task<std::optional<WireAnswer>> Deciding::begin(std::string reason, std::string before) {
  entry_.reason = std::move(reason);
  entry_.before = std::move(before);
  auto appending = parts_.audit.append(entry_);
  const auto seq = co_await appending;
  if (seq) {
    intent_ = *seq;
    crash_point(CrashPoint::resolve_before_commit);
    co_return std::nullopt;
  }
  co_return store_trouble(
      {StoreError::Code::unavailable,
       "Nothing was done, because the audit could not note it: " + seq.error().detail});
}

Task<void> Deciding::end(std::string after) {
  crash_point(CrashPoint::resolve_after_commit);
  auto concluding = parts_.audit.conclude(entry_, intent_, std::move(after));
  co_await concluding;
}

std::string state_text(const std::optional<Record>& record) {
  if (!record) return "none";
  std::string text(idem::name_of(record->state));
  if (const auto fence = record->fence()) text += " fence=" + std::to_string(*fence);
  if (record->response) text += " status=" + std::to_string(record->response->status);
  return record->is_contested ? text + " contested" : text;
}

std::string failure_text(const std::string& why) { return "failed: " + why; }

std::string doubt_text(const std::string& why) {
  return "not confirmed: " + why + "; look whether it was done";
}

std::string error_text(const StoreError& error) {
  return error.code == StoreError::Code::in_doubt ? doubt_text(error.detail)
                                                  : failure_text(error.detail);
}

}  // namespace idem::admin
