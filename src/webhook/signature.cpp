#include "core/base64.hpp"

#include <idem/webhook.hpp>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

namespace idem {
namespace {

constexpr std::string_view secret_prefix = "whsec_";
// What the specification asks for.
constexpr std::size_t secret_bytes_min = 24;
constexpr std::size_t secret_bytes_max = 64;

}  // namespace

std::expected<std::string, std::string> webhook_signature(const std::vector<std::string>& secrets,
                                                          const std::string& id,
                                                          std::int64_t timestamp,
                                                          const std::string& payload) {
  const std::string signed_text = id + "." + std::to_string(timestamp) + "." + payload;
  std::string all;
  for (const std::string& secret : secrets) {
    if (!secret.starts_with(secret_prefix)) {
      return std::unexpected("a webhook's secret begins with whsec_");
    }
    const auto key = from_base64(std::string_view(secret).substr(secret_prefix.size()));
    if (!key || key->size() < secret_bytes_min || key->size() > secret_bytes_max) {
      return std::unexpected("behind whsec_ stand 24 to 64 bytes in base64");
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    ::HMAC(::EVP_sha256(), key->data(), static_cast<int>(key->size()),
           reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(),
           digest.data(), &size);
    if (!all.empty()) all += ' ';
    all += "v1," + to_base64({reinterpret_cast<const char*>(digest.data()), size});
  }
  return all;
}

}  // namespace idem
