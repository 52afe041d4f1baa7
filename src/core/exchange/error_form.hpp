#pragma once

#include "core/exchange/policy.hpp"
#include "core/exchange/problem.hpp"

/// In which form the answers of our own are written: as problem documents, or so that the clients
/// of an API which they know make of them what they make of that API's errors.
namespace idem {

enum class ErrorForm : std::uint8_t { problem, stripe };

/// What the clients of a route with this preset expect.
constexpr ErrorForm error_form_of(Preset preset) noexcept {
  return preset == Preset::stripe ? ErrorForm::stripe : ErrorForm::problem;
}

/// An answer that has a `problem`, as Stripe's API writes errors: `{"error": {"type", "code",
/// "message", "doc_url", ...}}` with the members of ours beside Stripe's, and Stripe-Should-Retry.
/// The status is the one from which Stripe's clients make the exception that fits: they take a body
/// without `error` for a success, whatever its status. All fields stay but those that describe the
/// body.
/// `is_safe`: the request can be repeated without a key (RFC 9110 §9.2.1).
Answer in_stripe_form(const Answer& answer, bool is_safe);

}  // namespace idem
