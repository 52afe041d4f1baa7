#include "standard_webhook.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <charconv>

namespace provider {
namespace {

constexpr std::time_t tolerance = 300;  // As the specification's own libraries have it.

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string encode(const unsigned char* bytes, std::size_t count) {
  std::string out((count + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a NUL.
  auto* const to = reinterpret_cast<unsigned char*>(out.data());
  out.resize(static_cast<std::size_t>(EVP_EncodeBlock(to, bytes, static_cast<int>(count))));
  return out;
}

std::optional<std::string> decode(std::string_view text) {
  std::string out(text.size() / 4 * 3, '\0');
  auto* const to = reinterpret_cast<unsigned char*>(out.data());
  const int count = EVP_DecodeBlock(to, bytes_of(text), static_cast<int>(text.size()));
  if (count < 0) return std::nullopt;
  // OpenSSL counts the padding as bytes.
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  out.resize(static_cast<std::size_t>(count) - padding);
  return out;
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::optional<std::string> webhook_secret(std::string_view text) {
  constexpr std::string_view prefix = "whsec_";
  constexpr std::string_view space = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  text = text.substr(0, text.find_last_not_of(space) + 1);
  if (!text.starts_with(prefix) || text.size() > 100) return std::nullopt;
  auto secret = decode(text.substr(prefix.size()));
  if (!secret || secret->size() < 24 || secret->size() > 64) return std::nullopt;
  return secret;
}

std::string webhook_signature(std::string_view secret, std::string_view id,
                              std::string_view timestamp, std::string_view body) {
  std::string content;
  content.append(id).append(".").append(timestamp).append(".").append(body);
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes_of(content),
       content.size(), mac, &size);
  return "v1," + encode(mac, size);
}

bool webhook_is_genuine(std::string_view secret, const WebhookHead& head, std::string_view body,
                        std::time_t now) {
  std::time_t sent = 0;
  const auto* const end = head.timestamp.data() + head.timestamp.size();
  const auto read = std::from_chars(head.timestamp.data(), end, sent);
  if (read.ec != std::errc{} || read.ptr != end) return false;
  if (sent < now - tolerance || sent > now + tolerance) return false;
  const auto right = webhook_signature(secret, head.id, head.timestamp, body);
  bool genuine = false;
  for (std::string_view rest = head.signatures; !rest.empty();) {
    const auto one = rest.substr(0, rest.find(' '));
    genuine = same(one, right) || genuine;
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
  }
  return genuine;
}

}  // namespace provider
