#include <idem/record.hpp>

#include <openssl/crypto.h>
#include <time.h>

#include <algorithm>

namespace idem::inline v0_1 {

MonotonicClock::time_point MonotonicClock::now() noexcept {
  timespec moment{};
  clock_gettime(CLOCK_BOOTTIME, &moment);
  return time_point(std::chrono::duration_cast<Millis>(std::chrono::seconds(moment.tv_sec) +
                                                       std::chrono::nanoseconds(moment.tv_nsec)));
}

bool same_fingerprint(const Fingerprint& a, const Fingerprint& b) noexcept {
  return a.version == b.version &&
         CRYPTO_memcmp(a.digest.data(), b.digest.data(), a.digest.size()) == 0;
}

bool comparable(const Fingerprint& a, const Fingerprint& b) noexcept {
  if (a.version != b.version) return false;
  return a.version < fingerprints_name_their_rule ||
         std::equal(a.digest.begin(), a.digest.begin() + RuleName{}.size(), b.digest.begin());
}

std::string_view name_of(State state) noexcept {
  switch (state) {
    case State::pending:
      return "pending";
    case State::in_progress:
      return "in_progress";
    case State::completed:
      return "completed";
    case State::failed_retryable:
      return "failed_retryable";
    case State::unknown:
      return "unknown";
    case State::expired:
      return "expired";
  }
  return "corrupt";
}

std::string_view name_of(ReleaseBasis basis) noexcept {
  switch (basis) {
    case ReleaseBasis::proven:
      return "proven";
    case ReleaseBasis::declared:
      return "declared";
  }
  return "corrupt";
}

}  // namespace idem::inline v0_1
