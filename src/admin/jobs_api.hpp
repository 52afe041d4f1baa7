#pragma once

#include "admin/admin.hpp"
#include "admin/approvals_api.hpp"
#include "admin/job_matching.hpp"
#include "admin/jobs/job_runner.hpp"
#include "admin/login/role.hpp"
#include "admin/order_body.hpp"
#include "loop/offload.hpp"

namespace idem::admin {

/// `/v1/jobs` and the paths under it, and the running of jobs. Loop's thread only.
class JobsApi {
 public:
  /// All outlive it.
  JobsApi(AdminParts& parts, metrics::Shard& shard, Offload& offload, ApprovalsApi& approvals);

  /// Runs open jobs from now on. Before the loop runs, or on its thread.
  void start() { runner_.start(); }

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);
  /// A job that has its approvals; it has the id of the approval.
  Task<WireAnswer> decide(const ApprovalRequest& request, const OrderBody& order);

 private:
  Task<WireAnswer> preview(std::string body);
  /// The answer if the job of this approval has begun, or may begin; none: it can be made.
  Task<std::optional<WireAnswer>> made_before(std::string id);
  Task<WireAnswer> make(const OrderBody& received);
  Task<WireAnswer> begin(JobRequest request, const OrderBody& received, StoreTime now);
  Task<WireAnswer> begin_with(JobRequest request, const OrderBody& received, StoreTime now,
                              Matched matched);
  /// What answers in place of the beginning; none: begin.
  Task<std::optional<WireAnswer>> in_place_of(const JobRequest& request, const Matched& matched,
                                              StoreTime now, const OrderBody& received);
  Task<WireAnswer> list(std::string query);
  Task<WireAnswer> show(std::string id);
  Task<WireAnswer> results(std::string id, std::string query);
  Task<WireAnswer> cancel(std::string id, const OrderBody& received);
  Task<WireAnswer> close_damaged(std::string id, std::string reason, std::string trouble,
                                 const OrderBody& received);
  /// The job; the error is the answer.
  Task<std::expected<std::shared_ptr<JobFold>, WireAnswer>> find(std::string id);
  /// The records that match now, if their number is the one that the operator has seen.
  Task<std::expected<Matched, WireAnswer>> match(const JobRequest& request);

  AdminParts& parts_;
  Offload& offload_;
  ApprovalsApi& approvals_;
  JobJournals journals_;
  JobDecisions decisions_;
  JobRunner runner_;
};

}  // namespace idem::admin
