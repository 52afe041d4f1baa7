#include "admin/jobs_json.hpp"

#include "admin/json_members.hpp"
#include "json/writer.hpp"

#include <idem/job_limits.hpp>

#include <algorithm>

namespace idem::admin {
namespace {

using json::Writer;

void write_job(Writer& out, const JobFold& job) {
  const JobDefinition& definition = *job.definition();
  const JobOrder& order = definition.order;
  out.begin_object();
  out.member("job", definition.id);
  out.member("what", name_of(order.what));
  out.member("state", job.state());
  out.member("count", definition.count);
  out.member("done", job.done());
  out.member("refused", job.refused());
  out.member("left", job.left());
  out.member("rate", order.rate);
  out.member("who", definition.by.who);
  out.member("reason", order.reason);
  out.name("match");
  out.begin_object();
  for (const auto& [name, value] : order.match) out.member(name, value);
  out.end_object();
  out.name("as");
  if (order.what == JobWhat::resolve) {
    out.text(order.as == Resolve::As::completed ? "completed" : "failed_retryable");
  } else {
    out.null();
  }
  write_moment(out, "made_at", job.made_at());
  write_moment(out, "ended_at", job.end() ? std::optional(job.changed_at()) : std::nullopt);
  out.name("cancelled_by");
  if (job.cancel()) {
    out.text(job.cancel()->who);
  } else {
    out.null();
  }
  out.name("trouble");
  if (job.trouble().empty()) {
    out.null();
  } else {
    out.text(job.trouble());
  }
  out.end_object();
}

}  // namespace

std::string job_preview(std::span<const JobTarget> targets, bool is_exact) {
  Writer out;
  out.begin_object();
  out.member("count", targets.size());
  out.flag("is_exact", is_exact);
  out.name("examples");
  out.begin_array();
  for (const JobTarget& one : targets.first(std::min(targets.size(), limits::job_examples_max))) {
    out.text(to_hex(one.id.bytes));
  }
  out.end_array();
  out.end_object();
  return out.take() + '\n';
}

std::string job_page(const JobFold& job) {
  Writer out;
  write_job(out, job);
  return out.take() + '\n';
}

std::string jobs_page(std::span<const std::shared_ptr<const JobFold>> jobs, std::string_view next) {
  Writer out;
  out.begin_object();
  out.name("jobs");
  out.begin_array();
  for (const auto& job : jobs) write_job(out, *job);
  out.end_array();
  out.name("next");
  if (next.empty()) {
    out.null();
  } else {
    out.text(next);
  }
  out.end_object();
  return out.take() + '\n';
}

std::string job_results_page(const JobFold& job, std::size_t after, std::size_t limit) {
  const std::size_t from = std::min(after, job.results().size());
  const std::size_t until = from + std::min(limit, job.results().size() - from);
  Writer out;
  out.begin_object();
  out.name("results");
  out.begin_array();
  for (std::size_t i = from; i < until; ++i) {
    out.begin_object();
    out.member("ref", to_hex(job.targets()[i].id.bytes));
    out.name("fence");
    if (job.targets()[i].fence != 0) {
      out.number(job.targets()[i].fence);
    } else {
      out.null();
    }
    out.member("verdict", job.results()[i].verdict);
    out.member("state", job.results()[i].state);
    out.end_object();
  }
  out.end_array();
  out.name("next");
  if (until < job.results().size()) {
    out.number(until);
  } else {
    out.null();
  }
  out.end_object();
  return out.take() + '\n';
}

}  // namespace idem::admin
