#pragma once

#include <idem/relay.hpp>

#include <expected>
#include <functional>
#include <string>
#include <vector>

/// @file
/// Messages as signed HTTP requests: Standard Webhooks (www.standardwebhooks.com) for sender and
/// integrity, CloudEvents 1.0 in HTTP's binary mode for the content.
namespace idem::inline v0_1 {

/// The receiver of messages, and their signatures.
struct WebhookOptions {
  /// http:// or https://. Redirects are not followed, and no proxy is used.
  std::string url{};
  /// "whsec_" and 24 to 64 bytes in base64. Each signs, in this order, so that a receiver may
  /// change from one to the next. None: unsigned.
  std::vector<std::string> secrets{};
  /// `ce-source`: the sender, as a URI reference.
  std::string source = "/idem";
  /// PEM file of the authorities that the receiver's certificate is checked against; empty: the
  /// system's.
  std::string ca_file{};
};

/// Makes the function that sends a message there, for Destination::send; it is safe from any
/// thread. The error says what is wrong with the options, and repeats no secret.
///
/// CMake: idem::webhook.
///
/// POST, with `webhook-id`, `webhook-timestamp` and `webhook-signature`, `ce-id`, `ce-source`,
/// `ce-type`, `ce-time` and, where there is an aggregate, `ce-subject` ("TYPE/ID"), and
/// `Idempotency-Key`. Each has a connection of its own, so that it is sent once. Any 2xx is a
/// delivery, whose reference is `Idem-Reference` or `Location`; 410 is refused for good; any other
/// 4xx but 408, 409 and 425 proves that nothing was done; whatever else happens after the first
/// byte is ambiguous. The relay respects Retry-After.
[[nodiscard]] std::expected<std::function<CallEnd(const Delivery&)>, std::string> webhook(
    const WebhookOptions& options);

/// `webhook-signature` of a request: "v1," and HMAC-SHA-256 in base64 over "ID.TIMESTAMP.PAYLOAD",
/// once for each secret, with blanks between. An error: a secret is malformed.
[[nodiscard]] std::expected<std::string, std::string> webhook_signature(
    const std::vector<std::string>& secrets, const std::string& id, std::int64_t timestamp,
    const std::string& payload);

}  // namespace idem::inline v0_1
