#include "core/bytes/base64.hpp"
#include "core/bytes/digests.hpp"
#include "core/evidence/event_signature.hpp"

#include <idem/webhook.hpp>

namespace idem::inline v0_1 {
std::expected<std::string, std::string> webhook_signature(const std::vector<std::string>& secrets,
                                                          const std::string& id,
                                                          std::int64_t timestamp,
                                                          const std::string& payload) {
  const std::string signed_text = id + "." + std::to_string(timestamp) + "." + payload;
  std::string all;
  for (const std::string& secret : secrets) {
    const auto key = event_secret(EventSignature::Scheme::standard, secret);
    if (!key) {
      return std::unexpected(
          "a webhook's secret begins with whsec_, followed by 24 to 64 bytes in base64");
    }
    const auto mac = hmac_sha256(*key, signed_text);
    if (!mac) return std::unexpected("OpenSSL refuses to make the HMAC-SHA-256 of a webhook");
    if (!all.empty()) all += ' ';
    all += "v1," + to_base64(view_of(*mac));
  }
  return all;
}

}  // namespace idem::inline v0_1
