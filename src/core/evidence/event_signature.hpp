#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// Checks the signature and the time of a provider's event. Pure; compares in constant time.
struct EventSignature {
  enum class Scheme : std::uint8_t {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature` with "v1," and
    /// HMAC-SHA-256 in base64 over ID.TIMESTAMP.BODY.
    standard,
    /// One field with t=TIMESTAMP and v1=HEX of HMAC-SHA-256 over TIMESTAMP.BODY.
    stripe,
    /// One field with HMAC-SHA-256 over the body, in hexadecimal digits or base64, behind a prefix
    /// such as "sha256=". It has no timestamp.
    hmac,
  };
  Scheme scheme = Scheme::standard;
  /// Bytes. A signature under any of them is valid, so that a provider may change its secret.
  std::vector<std::string> secrets{};
  std::string field{};   ///< Of stripe and hmac.
  std::string prefix{};  ///< Of hmac.
};

/// The fields of a request's head that a signature needs; empty: not sent.
struct SignedHead {
  std::string_view id{};
  std::string_view timestamp{};
  std::string_view signature{};
};

/// The error is a sentence that repeats nothing of a secret or of the right signature. `now`:
/// seconds since 1970. Refuses a timestamp more than limits::event_tolerance away.
std::expected<void, std::string> check_signature(const EventSignature& by, const SignedHead& head,
                                                 std::string_view body, std::int64_t now);

/// The bytes of a secret from the text of its file: of Standard Webhooks "whsec_" and 24 to 64
/// bytes in base64, else the text itself, at least 16 bytes. None: invalid.
std::optional<std::string> event_secret(EventSignature::Scheme scheme, std::string_view text);

}  // namespace idem
