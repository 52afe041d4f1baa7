#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_client.hpp"
#include "support/json.hpp"

/// Bulk work of operators, as a test orders and watches it.
namespace idem::test {

Response admin_get(const std::string& admin, const std::string& target);
Response admin_post(const std::string& admin, const std::string& target, std::string body);

/// `count` records of tenant acme whose outcome is unknown, under keys that begin with `prefix`.
void make_unknown(const std::string& gateway, const std::string& prefix, int count);

/// The order to complete all unknown records.
std::string completing_all(int expected, int rate);

/// The job as it is, once `is_enough` holds of it, or the patience is over.
Json wait_for_job(const std::function<std::string()>& admin, const std::string& id,
                  const std::function<bool(const Json&)>& is_enough,
                  std::chrono::seconds timeout = std::chrono::seconds(60));
bool is_over(const Json& job);

struct SeenResult {
  std::int64_t fence = 0;
  std::string verdict;
  std::string state;
};
/// Of each ref; a ref that appears twice is a failure.
std::map<std::string, SeenResult> results_of(const std::string& admin, const std::string& id);

/// Lines of the job in the evidence of a record: all, and those that were applied.
struct EvidenceOfJob {
  int all = 0;
  int applied = 0;
};
EvidenceOfJob evidence_of_job(const std::string& admin, const std::string& ref,
                              const std::string& id);

}  // namespace idem::test
