#pragma once

#include "check/case.hpp"

/// The cases by what they are about. A case that cannot judge skips, and says why.
namespace idem::check {

std::span<const Case> replay_cases();
std::span<const Case> misuse_cases();
std::span<const Case> race_cases();
std::span<const Case> loss_cases();
std::span<const Case> key_cases();
std::span<const Case> lifetime_cases();
std::span<const Case> restart_cases();

/// A first request that has succeeded, which most cases begin with.
struct First {
  Order order;
  Request request;
  Answer answer;
};
/// The error says why there is none: a reason to skip.
std::expected<First, CaseEnd> send_first(CaseRun& run, Order order);
std::expected<First, CaseEnd> send_first(CaseRun& run);

/// Fails where the API executed the operation more often than `most`; none: it did not.
std::optional<CaseEnd> ran_too_often(CaseRun& run, std::int64_t most, const std::string& story);

/// A request whose operation is slow; none: the file does not say how (`no_slow`).
std::optional<Order> slow_order(CaseRun& run);
inline constexpr const char* no_slow = "`slow` is not set.";
inline constexpr const char* not_slow =
    "The first request ended within 250 ms: `slow` does not make it slow.";
inline constexpr const char* uuid_keys = "The keys of this API are UUIDs.";
inline constexpr const char* no_amount = "`request.body` has no {{amount}}.";
inline constexpr const char* no_difference =
    "The answers to two operations do not differ by an id, so that one cannot be recognised.";
bool is_over(std::future<CaseRun::Sent>& running);

/// An operation whose client left may still run when retries are answered already. Its effect
/// belongs to this case, and not to the next one.
void wait_for_left_operation(CaseRun& run);

/// "A key" as the label of a request: "a key".
std::string label_of(std::string what);

/// A race needs contenders: two, or half of many. Skips where fewer got an answer; one that was
/// refused by a limit of the rate did not take part.
std::optional<CaseEnd> too_few_met(const std::vector<CaseRun::Sent>& all);

/// Whether this status is one of these; of none, whether it is any 4xx.
bool is_one_of(int status, const std::vector<int>& wanted);
/// "422", "409 or 422", "a 4xx"
std::string statuses(const std::vector<int>& wanted);

/// Judges the answer to a request that reuses a key for another operation.
std::optional<CaseEnd> judge_refusal(CaseRun& run, const Answer& first, const CaseRun::Sent& other,
                                     const std::vector<int>& wanted, const std::string& what);

}  // namespace idem::check
