#pragma once

#include <idem/worker_limits.hpp>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// Who signed a provider's event, and when. Pure; all comparisons take constant time.
struct EventSignature {
  enum class Scheme : std::uint8_t {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature` with "v1," and
    /// HMAC-SHA-256 in base64 over ID.TIMESTAMP.BODY.
    standard,
    /// One field with t=TIMESTAMP and v1=HEX of HMAC-SHA-256 over TIMESTAMP.BODY.
    stripe,
    /// One field with HMAC-SHA-256 over the body, in hexadecimal digits or base64, behind a prefix
    /// such as "sha256=". It tells no time.
    hmac,
  };
  Scheme scheme = Scheme::standard;
  /// Bytes. Any of them will do, so that a provider may change over from one to the next.
  std::vector<std::string> secrets{};
  std::string field{};   ///< Of stripe and hmac.
  std::string prefix{};  ///< Of hmac.
};

/// What of a request's head a signature is made of; empty where it is not there.
struct SignedHead {
  std::string_view id{};
  std::string_view timestamp{};
  std::string_view signature{};
};

/// The error is a sentence that repeats nothing of a secret, nor of what would have been right.
/// `now`: seconds since 1970. More than limits::event_tolerance away is refused.
std::expected<void, std::string> check_signature(const EventSignature& by, const SignedHead& head,
                                                 std::string_view body, std::int64_t now);

/// HMAC-SHA-256 (RFC 2104), under a key of any length.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// The bytes of a secret as its file has it: behind "whsec_" of Standard Webhooks base64 of 24 to
/// 64 bytes, else the text itself, of 16 bytes at least. None: it is neither.
std::optional<std::string> event_secret(EventSignature::Scheme scheme, std::string_view text);

}  // namespace idem
