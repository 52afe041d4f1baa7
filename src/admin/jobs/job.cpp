#include "admin/jobs/job.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>
#include <array>

namespace idem::admin {
namespace {

constexpr std::array<std::string_view, 13> verdicts{
    "done",      "not_found",   "wrong_state", "wrong_fence",      "missing_response",
    "too_early", "by_evidence", "superseded",  "may_have_arrived", "not_dead",
    "damaged",   "invalid",     "refused"};
constexpr std::array<std::string_view, 10> states{
    "none",    "pending", "in_progress", "completed", "failed_retryable",
    "unknown", "expired", "waiting",     "dead",      "discarded"};

template <std::size_t Count>
std::optional<std::string_view> known(const std::array<std::string_view, Count>& names,
                                      std::string_view name) {
  const auto* const found = std::ranges::find(names, name);
  return found == names.end() ? std::nullopt : std::optional(*found);
}

constexpr std::uint64_t last_moment = 0xFFFF'FFFF'FFFF;

std::array<std::uint8_t, 6> backwards(StoreTime moment) {
  const auto since = static_cast<std::uint64_t>(moment.time_since_epoch().count());
  const std::uint64_t left = last_moment - std::min(since, last_moment);
  std::array<std::uint8_t, 6> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(left >> (8 * (bytes.size() - 1 - i)));
  }
  return bytes;
}

}  // namespace

std::string_view name_of(JobWhat what) noexcept {
  switch (what) {
    case JobWhat::resolve:
      return "keys.resolve";
    case JobWhat::release:
      return "keys.release";
    case JobWhat::redrive:
      return "dlq.redrive";
    case JobWhat::discard:
      return "dlq.discard";
  }
  return "";
}

std::optional<JobWhat> parse_job_what(std::string_view name) noexcept {
  for (const auto what : {JobWhat::resolve, JobWhat::release, JobWhat::redrive, JobWhat::discard}) {
    if (name_of(what) == name) return what;
  }
  return std::nullopt;
}

std::optional<JobResult> known_result(std::string_view verdict, std::string_view state) noexcept {
  const auto known_verdict = known(verdicts, verdict);
  const auto known_state = known(states, state);
  if (!known_verdict || !known_state) return std::nullopt;
  return JobResult{*known_verdict, *known_state};
}

std::string_view name_of(Resolve::Verdict verdict) noexcept {
  using Verdict = Resolve::Verdict;
  switch (verdict) {
    case Verdict::done:
      return "done";
    case Verdict::not_found:
      return "not_found";
    case Verdict::wrong_state:
      return "wrong_state";
    case Verdict::wrong_fence:
      return "wrong_fence";
    case Verdict::missing_response:
      return "missing_response";
    case Verdict::too_early:
      return "too_early";
    case Verdict::by_evidence:
      return "by_evidence";
    case Verdict::superseded:
      return "superseded";
  }
  return "";
}

std::string mark_of(const JobDefinition& job) { return " (job " + job.id + ")"; }

std::string reason_in(const JobDefinition& job) { return job.order.reason + mark_of(job); }

std::string source_in(const JobDefinition& job) { return "operator:" + job.by.who; }

// The store lists names upwards only, and people want to see the newest jobs first.
std::string new_job_id(StoreTime now) {
  std::array<std::uint8_t, 10> random{};
  random_bytes(random);
  return to_hex(backwards(now)) + to_hex(random);
}

std::string job_id_before(StoreTime moment) {
  return to_hex(backwards(moment)) + std::string(20, 'f');
}

}  // namespace idem::admin
