#include "admin/jobs/job_fold.hpp"

#include <idem/job_limits.hpp>

namespace idem::admin {

JobFold JobFold::ended(const JournalLine& first, JobDefinition definition, const JournalLine& last,
                       JobEnd end) {
  JobFold fold;
  fold.definition_ = std::move(definition);
  fold.has_begun_ = true;
  fold.made_at_ = first.at;
  fold.changed_at_ = last.at;
  fold.last_ = last.seq;
  fold.done_ = end.done;
  fold.refused_ = end.refused;
  fold.end_ = std::move(end);
  return fold;
}

void JobFold::see(const JournalLine& line) {
  set_now(line.at);
  if (line.seq <= last_) return;
  const auto complain = [&](const std::string& what) {
    if (trouble_.empty()) trouble_ = "line " + std::to_string(line.seq) + " " + what;
  };
  if (line.seq != last_ + 1) complain("follows line " + std::to_string(last_));
  last_ = line.seq;
  changed_at_ = line.at;
  if (!trouble_.empty()) return;
  if (line.is_damaged) return complain(line.why.empty() ? "is damaged" : line.why);
  auto parsed = parse_job_line(line.bytes);
  if (!parsed) return complain("is of a form that this version does not know");
  const auto wrong = std::visit([&](auto& one) { return take(std::move(one), line.at); }, *parsed);
  if (!wrong.empty()) complain(wrong);
}

std::string JobFold::take(JobDefinition line, StoreTime at) {
  if (definition_) return "is a second definition";
  definition_ = std::move(line);
  made_at_ = at;
  return "";
}

std::string JobFold::take(JobTargets line, StoreTime /*at*/) {
  if (!definition_ || has_begun_) return "has records at the wrong place";
  targets_.insert(targets_.end(), line.targets.begin(), line.targets.end());
  return targets_.size() > limits::job_records_max ? "has too many records" : "";
}

std::string JobFold::take(const JobBegin& /*line*/, StoreTime /*at*/) {
  if (!definition_ || has_begun_) return "begins at the wrong place";
  if (definition_->count != targets_.size()) return "begins without all records";
  has_begun_ = true;
  return "";
}

std::string JobFold::take(JobClaim line, StoreTime at) {
  if (!is_open()) return "claims a job that is not open";
  claimer_ = std::move(line.by);
  claimed_at_ = at;
  return "";
}

std::string JobFold::take(const JobResults& line, StoreTime at) {
  if (!is_open() || line.by != claimer_) return "has results of a process that does not run it";
  if (line.from != results_.size() || line.results.size() > left()) {
    return "has results of other records";
  }
  for (const JobResult& one : line.results) {
    results_.push_back(one);
    ++(is_done(one) ? done_ : refused_);
  }
  claimed_at_ = at;
  return "";
}

std::string JobFold::take(JobCancel line, StoreTime /*at*/) {
  if (!is_open()) return "cancels a job that is not open";
  if (!cancel_) cancel_ = std::move(line);
  return "";
}

std::string JobFold::take(JobEnd line, StoreTime /*at*/) {
  if (!is_open() || line.by != claimer_) return "is an end by a process that does not run it";
  if (line.done != done_ || line.refused != refused_) return "ends with other counts";
  end_ = std::move(line);
  return "";
}

std::string_view JobFold::state() const {
  if (!trouble_.empty()) return "damaged";
  if (end_) return end_->is_cancelled ? "cancelled" : "ended";
  if (cancel_) return "cancelling";
  return claimer_.empty() || claim_age() > limits::job_claim ? "waiting" : "running";
}

}  // namespace idem::admin
