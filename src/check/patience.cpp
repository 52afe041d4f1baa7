#include "check/patience.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace idem::check {

using Millis = std::chrono::milliseconds;

bool is_rate_limited(const Answer& answer, const Profile& profile) {
  if (std::ranges::find(profile.in_flight, answer.status) != profile.in_flight.end()) return false;
  return answer.status == 429 || (answer.status == 503 && answer.find("Retry-After") != nullptr);
}

Millis pause_after(const Answer& answer) {
  return advised_wait(answer, Millis(500), Millis(10'000));
}

Millis advised_wait(const Answer& answer, Millis otherwise, Millis most) {
  const std::string* const after = answer.find("Retry-After");
  int seconds = 0;
  if (after == nullptr) return otherwise;
  const auto parsed = std::from_chars(after->data(), after->data() + after->size(), seconds);
  if (parsed.ec != std::errc{} || seconds < 0) return otherwise;
  return std::clamp<Millis>(std::chrono::seconds(seconds), Millis(50), most);
}

}  // namespace idem::check
