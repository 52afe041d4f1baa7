#pragma once

#include "admin/jobs/job.hpp"
#include "admin/keys_query.hpp"

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace idem::admin {

/// Which records or messages a job is about.
struct JobSearch {
  JobWhat what = JobWhat::resolve;
  KeysQuery keys{};  ///< Without ages: moments are counted from `now` at the parsing.
  std::string destination{};
  std::string type{};
};

/// The body of `POST /v1/jobs/preview`, or of `POST /v1/jobs`.
struct JobRequest {
  JobSearch search{};
  JobOrder order{};            ///< Of a preview: only `what` and `match`.
  std::uint64_t expected = 0;  ///< The number of records that the operator has seen.
  /// When the operator looked whether they ran; none: when the order was given.
  std::optional<StoreTime> observed_at{};
};

/// `{"what","match"}`. Ages count back from `now`. Every error names the place and says what to
/// write.
std::expected<JobRequest, std::string> parse_job_preview(std::string_view body, StoreTime now,
                                                         const ParseDuration& parse_duration);
/// `{"what","match","order","expected","rate"}`; `order` has the members of an order about one
/// record, without its fence.
std::expected<JobRequest, std::string> parse_job(std::string_view body, StoreTime now,
                                                 const ParseDuration& parse_duration);

/// `{"reason"}`.
std::expected<std::string, std::string> parse_job_reason(std::string_view body);

}  // namespace idem::admin
