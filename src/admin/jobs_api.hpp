#pragma once

#include "admin/admin.hpp"
#include "admin/job_matching.hpp"
#include "admin/jobs/job_runner.hpp"
#include "admin/login/role.hpp"
#include "admin/order_body.hpp"
#include "loop/offload.hpp"

namespace idem::admin {

/// `/v1/jobs` and the paths under it, and the running of jobs. Loop's thread only.
class JobsApi {
 public:
  /// Both outlive it.
  JobsApi(AdminParts& parts, Offload& offload);

  /// Runs open jobs from now on. Before the loop runs, or on its thread.
  void start() { runner_.start(); }

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);

 private:
  Task<WireAnswer> preview(std::string body);
  Task<WireAnswer> make(const OrderBody& received);
  Task<WireAnswer> begin(JobRequest request, const OrderBody& received, StoreTime now);
  Task<WireAnswer> list(std::string query);
  Task<WireAnswer> show(std::string id);
  Task<WireAnswer> results(std::string id, std::string query);
  Task<WireAnswer> cancel(std::string id, const OrderBody& received);
  /// The job; the error is the answer.
  Task<std::expected<std::shared_ptr<JobFold>, WireAnswer>> find(std::string id);
  /// The records that match now, if their number is the one that the operator has seen.
  Task<std::expected<Matched, WireAnswer>> match(const JobRequest& request);

  AdminParts& parts_;
  Offload& offload_;
  JobJournals journals_;
  JobDecisions decisions_;
  JobRunner runner_;
};

}  // namespace idem::admin
