#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The record of protocol.md §2 and its parts: plain values, no behaviour that touches the world.
namespace idem::inline v0_1 {

/// A length of time.
using Millis = std::chrono::milliseconds;

/// A moment by the *store's* clock, in milliseconds since the Unix epoch. Never compare it with a
/// clock of this machine: an owner decides by its own monotonic clock what it may still do.
using StoreTime = std::chrono::time_point<std::chrono::system_clock, Millis>;

/// A moment by this machine's monotonic clock, which counts suspended time too (CLOCK_BOOTTIME).
struct MonotonicClock {
  using duration = Millis;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicClock, Millis>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;  ///< Safe from any thread.
};
/// A moment of MonotonicClock.
using MonotonicTime = MonotonicClock::time_point;

/// Name of a record: HMAC-SHA-256, cut to 128 bits, over the length-framed (scope, operation, key)
/// under the store's secret. It is also the opaque handle that upstreams see (`Idem-Operation`).
struct RecordId {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const RecordId&) const = default;
};

/// Random, chosen by the asker before it asks: its only proof that a reservation is its own (§4).
struct Token {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const Token&) const = default;
};

/// Grows, and is never repeated for a key, also after its record is gone (§1). 0 is never granted:
/// stores and answers write 0 for "none"; C++ has an empty optional, and a verb with 0 has none.
using Fence = std::uint64_t;

/// The attempt of an owner's verb. Without a fence (the reply that granted it was lost) the token
/// alone decides.
struct AttemptRef {
  std::optional<Fence> fence;
  Token token;
  bool operator==(const AttemptRef&) const = default;
};

/// One grant of the right to execute.
struct Attempt {
  Fence fence = 0;
  Token token;
  bool operator==(const Attempt&) const = default;
  /// For an owner's verb. A fence of 0 is none.
  operator AttemptRef() const noexcept {
    return {fence != 0 ? std::optional(fence) : std::nullopt, token};
  }
};

/// Digest of a request, with the version of the rules that made it (§10).
///
/// In version 1 it holds, in this order: the RuleName, the ValuesName, and 16 bytes that cover all
/// that counts. Version 0 is the SQL face's: a digest of the bytes that the service gave.
struct Fingerprint {
  std::uint32_t version = 0;
  std::array<std::uint8_t, 32> digest{};
};

/// Equal version and digest; the digests are compared in constant time.
bool same_fingerprint(const Fingerprint& a, const Fingerprint& b) noexcept;

/// Names the FingerprintRule that made a digest. Zeros: there was none.
using RuleName = std::array<std::uint8_t, 8>;

/// A BodyKind, then 7 bytes of a digest of the request's values, read as loosely as any server may
/// read them: requests that some server takes for one have one such digest. Zeros: Idem cannot read
/// the values of the body.
using ValuesName = std::array<std::uint8_t, 8>;

/// What Idem reads the values of a body as.
enum class BodyKind : std::uint8_t {
  unread = 0,  ///< It is encoded, or Idem does not know its format, or it does not follow that.
  json = 1,
  form = 2,
  empty = 3,
};
BodyKind body_kind(const Fingerprint& fingerprint) noexcept;

/// True if `a` and `b` prove two requests: one rule made both, Idem could read the values of both
/// bodies as one kind, and those differ. Unequal bytes prove nothing: a body that is compressed
/// again has other ones.
bool prove_two_requests(const Fingerprint& a, const Fingerprint& b) noexcept;

/// The state of a record (§3).
enum class State : std::uint8_t {
  pending = 1,
  in_progress = 2,
  completed = 3,
  failed_retryable = 4,
  unknown = 5,
  expired = 6,
};

/// What becomes of an expired lease whose request was dispatched (§3).
enum class LeasePolicy : std::uint8_t { unknown = 1, resume = 2, rerun = 3 };

/// Why a record became failed_retryable: non-execution was proven (§11), or the route declares that
/// such an answer means it (§12).
enum class ReleaseBasis : std::uint8_t { proven = 1, declared = 2 };

/// The field's name, as used in SQL, logs, metrics and the API: "in_progress".
std::string_view name_of(State state) noexcept;
/// Likewise: "proven".
std::string_view name_of(ReleaseBasis basis) noexcept;

/// One header field; the name keeps its spelling, the value has no surrounding white space.
struct Field {
  std::string name;
  std::string value;
  bool operator==(const Field&) const = default;
};

/// An answer as it is stored: end-to-end fields only (§14).
struct StoredResponse {
  int status = 0;
  std::vector<Field> headers;
  std::string body;
  /// False when the body crossed the limit: the record proves that the work ran, and holds no body.
  bool body_stored = true;
  bool operator==(const StoredResponse&) const = default;
};

/// A whole record. The state decides which members have a meaning; transitions keep the others
/// empty.
struct Record {
  RecordId id;
  std::string scope;
  std::string operation;
  /// The identity's generation when the record was made: it fixes the secret of id and fingerprint.
  std::uint64_t generation = 1;
  Fingerprint fingerprint;
  State state = State::in_progress;
  /// The last one, also after it ended. None: the request was stored, and never ran.
  std::optional<Attempt> attempt;
  std::string owner;
  StoreTime locked_until;
  bool dispatched = false;
  LeasePolicy lease_policy = LeasePolicy::unknown;
  /// Stored with the record, so that every sweeper and every later settlement uses the same values.
  Millis retention{};
  Millis tombstone{};
  /// Bytes that it counts for in its scope's quota; 0: it is not counted.
  std::uint64_t charged = 0;
  std::string recovery_point;
  /// Set while an asynchronous request's bytes are stored with the record.
  std::optional<std::string> stored_request;
  std::optional<StoredResponse> response;
  std::optional<ReleaseBasis> release_basis;
  std::string last_error_code;
  std::optional<StoreTime> reconcile_after;
  std::uint32_t reconcile_attempts = 0;
  std::string upstream_reference;
  /// The provider to ask how the attempt ended, from the route at the attempt's start: a name of
  /// `providers`. Empty: none.
  std::string provider;
  /// The client's key, sealed, if that provider is asked by the key; dropped on completion.
  std::string sealed_key;
  /// Evidence that could not be applied says, or may say, that this attempt was executed (§19). The
  /// store refuses its release, its cache-bust, and completion by a later refusal of the provider.
  bool is_contested = false;
  StoreTime created_at;
  /// Last change of state: for `unknown` the "since", for failed_retryable the moment of release.
  StoreTime changed_at;
  std::optional<StoreTime> completed_at;
  std::optional<StoreTime> expires_at;
  std::optional<StoreTime> tombstone_until;

  /// The fence of its attempt.
  std::optional<Fence> fence() const noexcept {
    return attempt ? std::optional(attempt->fence) : std::nullopt;
  }
};

/// Lower-case hex of any byte array: handles, tokens, digests.
template <std::size_t N>
std::string to_hex(const std::array<std::uint8_t, N>& bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(N * 2, '0');
  for (std::size_t i = 0; i < N; ++i) {
    text[2 * i] = digits[bytes[i] >> 4];
    text[2 * i + 1] = digits[bytes[i] & 15];
  }
  return text;
}

}  // namespace idem::inline v0_1
