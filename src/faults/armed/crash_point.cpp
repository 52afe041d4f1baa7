#include <idem/crash_point.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace idem {
namespace {

constexpr std::array<std::string_view, 40> point_names{"parsed",
                                                       "fingerprinted",
                                                       "reserve_before_commit",
                                                       "reserve_after_commit",
                                                       "claimed",
                                                       "dispatch_before_first_byte",
                                                       "dispatch_mid_request",
                                                       "dispatch_sent",
                                                       "response_head",
                                                       "response_mid_body",
                                                       "settle_before_commit",
                                                       "settle_after_commit",
                                                       "answer_before_first_byte",
                                                       "answer_mid",
                                                       "plan_before_commit",
                                                       "plan_after_commit",
                                                       "question_before_first_byte",
                                                       "question_answered",
                                                       "event_verified",
                                                       "resolve_before_commit",
                                                       "resolve_after_commit",
                                                       "job_decided",
                                                       "job_noted",
                                                       "backup_begun",
                                                       "backup_copied",
                                                       "backup_checked",
                                                       "backup_named",
                                                       "restore_prepared",
                                                       "restore_old_kept",
                                                       "restore_blocked",
                                                       "restore_named",
                                                       "copy_put",
                                                       "copy_closed",
                                                       "copy_compared",
                                                       "copy_moved",
                                                       "copy_finished",
                                                       "copy_undone",
                                                       "shards_moving",
                                                       "shard_copied",
                                                       "shards_moved"};

struct Trigger {
  CrashPoint point;
  int passage;
  int signal;
};

std::optional<Trigger> read_trigger(const char* variable, int signal) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::string_view name(text);
  int passage = 1;
  if (const auto colon = name.find(':'); colon != std::string_view::npos) {
    passage = std::atoi(text + colon + 1);
    name = name.substr(0, colon);
  }
  for (std::size_t i = 0; i < point_names.size(); ++i) {
    if (point_names[i] == name) return Trigger{static_cast<CrashPoint>(i), passage, signal};
  }
  std::abort();  // A misspelt point would make a crash test pass without a crash.
}

std::optional<Trigger> chosen() {
  if (auto kill = read_trigger("IDEM_CRASH_AT", SIGKILL)) return kill;
  return read_trigger("IDEM_STOP_AT", SIGSTOP);
}

const std::optional<Trigger> trigger = chosen();
std::atomic<int> passages{0};

}  // namespace

void crash_point(CrashPoint point) noexcept {
  if (!trigger || trigger->point != point) return;
  if (passages.fetch_add(1) + 1 == trigger->passage) std::raise(trigger->signal);
}

bool crash_point_armed(CrashPoint point) noexcept { return trigger && trigger->point == point; }

}  // namespace idem
