#pragma once

#include "admin/jobs/job.hpp"

#include <span>
#include <variant>

/// The lines of a job's journal, each a JSON object: the definition, the targets in several lines,
/// `begin`, and then claims, results, a cancel and the end.
namespace idem::admin {

struct JobTargets {
  std::vector<JobTarget> targets;
};
/// From here on the job runs.
struct JobBegin {};
/// The process `by` runs the job from now on.
struct JobClaim {
  std::string by;
};
/// What became of the records from number `from` on; written by the process that runs the job.
struct JobResults {
  std::string by;
  std::uint64_t from = 0;
  std::vector<JobResult> results;
};
struct JobCancel {
  std::string who;
  std::string reason;
};
struct JobEnd {
  std::string by;
  std::uint64_t done = 0;
  std::uint64_t refused = 0;
  bool is_cancelled = false;
};

using JobLine =
    std::variant<JobDefinition, JobTargets, JobBegin, JobClaim, JobResults, JobCancel, JobEnd>;

std::string write_line(const JobDefinition& line);
std::string write_line(std::span<const JobTarget> targets);
std::string write_line(const JobBegin& line);
std::string write_line(const JobClaim& line);
std::string write_line(const JobResults& line);
std::string write_line(const JobCancel& line);
std::string write_line(const JobEnd& line);

/// None: this version does not understand it.
std::optional<JobLine> parse_job_line(std::string_view bytes);

}  // namespace idem::admin
