#include "cli/commands/jobs_command.hpp"

#include "cli/commands/admin_values.hpp"
#include "cli/commands/jobs_print.hpp"
#include "core/bytes/percent.hpp"
#include "json/writer.hpp"

namespace idem::cli {

JobsCommand::JobsCommand(const Command& program)
    : BulkCommand(program, "jobs", "See and cancel bulk work on records and dead letters"),
      list_(declare("list", "List jobs, the newest first")),
      show_(declare("show", "One job with its progress")),
      results_(declare("results", "What became of each record of a job")),
      cancel_(declare("cancel", "Decide no more in a job; what was decided stays")) {
  for (const auto& one : {show_, results_, cancel_}) {
    one.add_option("id", id_, "the job's id: 32 hexadecimal digits").required().valid(why_no_id);
  }
  list_.add_option("--limit", limit_, "jobs in a page").between(1, 100);
  list_.add_option("--cursor", cursor_, "continue after an earlier page");
  results_.add_option("--limit", limit_, "results in a page").between(1, 1'000);
  results_.add_option("--after", after_, "continue behind this many results");
  cancel_.add_option("--reason", reason_, "why, for the audit").required();
}

int JobsCommand::run() {
  if (list_.parsed()) {
    std::string target = "/v1/jobs";
    if (limit_) add_parameter(target, "limit", std::to_string(*limit_));
    add_parameter(target, "cursor", cursor_);
    return finish(target, nullptr, print_jobs);
  }
  if (cancel_.parsed()) return cancel();
  std::string target = "/v1/jobs/" + percent_encoded(id_);
  if (show_.parsed()) return finish(target, nullptr, print_job);
  target += "/results";
  if (limit_) add_parameter(target, "limit", std::to_string(*limit_));
  add_parameter(target, "after", after_);
  return finish(target, nullptr, print_job_results);
}

int JobsCommand::cancel() {
  json::Writer order;
  order.begin_object();
  order.member("reason", reason_);
  order.end_object();
  const std::string body = order.take();
  return finish("/v1/jobs/" + percent_encoded(id_) + "/cancel", &body, print_job);
}

}  // namespace idem::cli
