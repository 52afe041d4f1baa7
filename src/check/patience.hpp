#pragma once

#include "check/profile.hpp"
#include "check/wire/message.hpp"

#include <chrono>

/// What to do where an API asks to come again later.
namespace idem::check {

// After so many the case cannot judge.
inline constexpr int pauses_max = 6;

/// A refusal for the number of requests: 429, or 503 with Retry-After, unless the profile says that
/// a running operation has this status.
bool is_rate_limited(const Answer& answer, const Profile& profile);
/// How long such a refusal asks to wait, bounded, so that a run ends.
std::chrono::milliseconds pause_after(const Answer& answer);
/// Retry-After, or else `otherwise`; at most `most`.
std::chrono::milliseconds advised_wait(const Answer& answer, std::chrono::milliseconds otherwise,
                                       std::chrono::milliseconds most);

}  // namespace idem::check
