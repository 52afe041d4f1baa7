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

namespace {

constexpr std::uint32_t fingerprints_name_values = 1;
constexpr std::size_t kind_at = RuleName{}.size();
constexpr std::size_t values_end = kind_at + ValuesName{}.size();

}  // namespace

BodyKind body_kind(const Fingerprint& fingerprint) noexcept {
  if (fingerprint.version != fingerprints_name_values) return BodyKind::unread;
  const std::uint8_t kind = fingerprint.digest[kind_at];
  return kind <= static_cast<std::uint8_t>(BodyKind::empty) ? static_cast<BodyKind>(kind)
                                                            : BodyKind::unread;
}

bool prove_two_requests(const Fingerprint& a, const Fingerprint& b) noexcept {
  const BodyKind kind = body_kind(a);
  if (kind == BodyKind::unread || kind != body_kind(b)) return false;
  const auto from_a = a.digest.begin();
  const auto from_b = b.digest.begin();
  return std::equal(from_a, from_a + kind_at, from_b) &&
         !std::equal(from_a + kind_at, from_a + values_end, from_b + kind_at);
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
