#pragma once

#include "admin/jobs/job_fold.hpp"

#include <memory>
#include <span>
#include <string>

namespace idem::admin {

/// How many match, and the first of them.
std::string job_preview(std::span<const JobTarget> targets, bool is_exact);
/// One job: the order and its progress. The bodies of clients and providers are never shown here.
std::string job_page(const JobFold& job);
std::string jobs_page(std::span<const std::shared_ptr<const JobFold>> jobs, std::string_view next);
/// The results behind the first `after` ones, `limit` at most.
std::string job_results_page(const JobFold& job, std::size_t after, std::size_t limit);

}  // namespace idem::admin
