#include "check/profile.hpp"

#include <array>

namespace idem::check {
namespace {

constexpr std::array<std::string_view, 5> names{"ietf", "stripe", "acp", "ucp", "custom"};

// draft-ietf-httpapi-idempotency-key-header-07, sections 2.1, 2.4, 2.6 and 2.7.
Profile ietf() {
  return {.name = "ietf",
          .document = "draft-ietf-httpapi-idempotency-key-header-07",
          .misuse = {422},
          .in_flight = {409},
          .missing = {400},
          .key_required = true,
          .accepts_strings = true,
          .refuses_lists = true};
}

// Stripe's API reference, "Idempotent requests" and "Errors".
Profile stripe() {
  return {.name = "stripe",
          .document = "Stripe API reference, Idempotent requests",
          .misuse = {400},
          .in_flight = {409},
          .key_length = 255,
          .marker = "Idempotent-Replayed: true",
          .server_errors = Profile::Errors::replayed};
}

// Agentic Commerce Protocol, checkout RFC, section 6.
Profile acp() {
  return {.name = "acp",
          .document = "Agentic Commerce Protocol, checkout RFC, section 6",
          .misuse = {422},
          .in_flight = {409},
          .missing = {400},
          .key_required = true,
          .key_length = 255,
          .marker = "Idempotent-Replayed: true",
          .echoes_key = true,
          .advises_retry = true,
          .equal_by_meaning = true,
          .server_errors = Profile::Errors::run_again};
}

// Universal Commerce Protocol, August 2026, REST binding.
Profile ucp() {
  return {.name = "ucp",
          .document = "Universal Commerce Protocol, REST binding",
          .misuse = {409},
          .in_flight = {409}};
}

}  // namespace

std::optional<Profile> profile_of(std::string_view name) {
  if (name == "ietf") return ietf();
  if (name == "stripe") return stripe();
  if (name == "acp") return acp();
  if (name == "ucp") return ucp();
  if (name == "custom") return Profile{.name = "custom", .document = "what the file expects"};
  return std::nullopt;
}

std::string profile_names() {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace idem::check
