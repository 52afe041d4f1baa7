#pragma once

#include "core/exchange/policy.hpp"
#include "core/exchange/problem.hpp"

/// The form of Idem's own answers: problem documents, or the errors of an API whose client
/// libraries read those and nothing else.
namespace idem {

enum class ErrorForm : std::uint8_t { problem, stripe };

/// The form that the clients of a route with this preset expect.
constexpr ErrorForm error_form_of(Preset preset) noexcept {
  return preset == Preset::stripe ? ErrorForm::stripe : ErrorForm::problem;
}

/// An answer that has a `problem`, as Stripe's API writes errors: `{"error": {"type", "code",
/// "message", "doc_url", ...}}` with our members beside Stripe's, and Stripe-Should-Retry. Stripe's
/// clients regard a body without `error` as a success, whatever its status; from the status chosen
/// here they make the fitting exception. All fields stay but those that describe the body.
/// `is_safe`: the request can be repeated without a key (RFC 9110 §9.2.1).
WireAnswer in_stripe_form(const WireAnswer& answer, bool is_safe);

}  // namespace idem
