#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace provider {

/// The signature of Standard Webhooks (https://www.standardwebhooks.com), symmetric scheme `v1`.
/// A secret is `whsec_` and 24 to 64 bytes in base64; nothing when `text` is none. The space around
/// it goes, so a file may end with a newline.
std::optional<std::string> webhook_secret(std::string_view text);

/// The value of `webhook-signature`: `v1,` and HMAC-SHA256 of `id.timestamp.body` in base64.
std::string webhook_signature(std::string_view secret, std::string_view id,
                              std::string_view timestamp, std::string_view body);

/// The three fields of a request.
struct WebhookHead {
  std::string id;
  std::string timestamp;   ///< Unix seconds.
  std::string signatures;  ///< With spaces between them: one per secret while secrets rotate.
};

/// Whether one of the signatures is right and the timestamp at most five minutes from `now`.
bool webhook_is_genuine(std::string_view secret, const WebhookHead& head, std::string_view body,
                        std::time_t now);

}  // namespace provider
