#pragma once

#include <idem/store.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// "Do this to all that match": an operator's order about many records, as values.
namespace idem::admin {

/// What a job does to each of its records or messages.
enum class JobWhat : std::uint8_t { resolve, release, redrive, discard };
/// "keys.resolve", "keys.release", "dlq.redrive", "dlq.discard".
std::string_view name_of(JobWhat what) noexcept;
std::optional<JobWhat> parse_job_what(std::string_view name) noexcept;
constexpr bool is_about_keys(JobWhat what) noexcept {
  return what == JobWhat::resolve || what == JobWhat::release;
}

/// What is to be done, as the operator gave it. The reason names the job in each record's evidence.
struct JobOrder {
  JobWhat what = JobWhat::resolve;
  /// The filters that found the records, to be shown; moments instead of ages.
  std::vector<std::pair<std::string, std::string>> match{};
  Resolve::As as = Resolve::As::completed;
  std::string evidence{};
  std::optional<StoredResponse> response{};
  bool nothing_there = false;  ///< Of a redrive.
  std::string reason{};
  unsigned rate = 0;  ///< Records a second.
};

/// Who gave an order, as the audit names it.
struct JobSigner {
  std::string who{};
  std::string role{};
  std::string login{};
  std::string peer{};
};

/// The first line of a job.
struct JobDefinition {
  std::string id{};
  JobSigner by{};
  JobOrder order{};
  std::uint64_t count = 0;
  StoreTime observed_at{};  ///< When the operator gave the order, and so had seen the evidence.
  /// As in Resolve, by the settings of the process that began the job. The process that
  /// decides waits as long at least.
  Millis grace{};
};

/// A record as it was when the job was made. Of a message: its id, and no fence.
struct JobTarget {
  RecordId id;
  Fence fence = 0;
  bool operator==(const JobTarget&) const = default;
};

/// What became of one record.
struct JobResult {
  /// "done", the verdict of a refusal, "damaged", "invalid" (the store takes no such order), or
  /// "refused" (by a process that ended before it noted the verdict).
  std::string_view verdict;
  std::string_view state;  ///< The record's, or the message's; "none".
  bool operator==(const JobResult&) const = default;
};
/// The same with texts that live for ever; none: this version knows no such result.
std::optional<JobResult> known_result(std::string_view verdict, std::string_view state) noexcept;
constexpr bool is_done(const JobResult& result) noexcept { return result.verdict == "done"; }

/// How results and answers name a verdict: "done", "wrong_fence" and so on.
std::string_view name_of(Resolve::Verdict verdict) noexcept;

/// Names the job in the evidence of a record or the history of a message: "REASON (job ID)".
std::string reason_in(const JobDefinition& job);
/// What that ends with.
std::string mark_of(const JobDefinition& job);
/// The source of its decisions in the evidence.
std::string source_in(const JobDefinition& job);

/// A new id: 32 hexadecimal digits, those of later jobs before those of earlier ones.
std::string new_job_id(StoreTime now);
/// All ids behind it are of jobs that were made before `moment`.
std::string job_id_before(StoreTime moment);

/// The journal of a job, and the one that says that it may have begun and not ended.
inline constexpr std::string_view job_journals = "job/";
inline constexpr std::string_view open_job_journals = "open-job/";

}  // namespace idem::admin
