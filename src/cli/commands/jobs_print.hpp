#pragma once

#include <string>

namespace idem::cli {

/// One job, a page of jobs and a page of results as tables. False: this is none of the admin API.
bool print_job(const std::string& json);
bool print_jobs(const std::string& json);
bool print_job_results(const std::string& json);

}  // namespace idem::cli
