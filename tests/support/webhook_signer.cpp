#include "support/webhook_signer.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "support/json.hpp"

namespace idem::test {

std::string webhook_signature(std::string_view secret, std::string_view id,
                              std::string_view timestamp, std::string_view body) {
  const auto key = decode_base64(secret.substr(std::string_view("whsec_").size()));
  std::string text;
  text.append(id).append(".").append(timestamp).append(".").append(body);
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  unsigned char base64[2 * EVP_MAX_MD_SIZE];
  const int length = EVP_EncodeBlock(base64, mac, static_cast<int>(size));
  return "v1," +
         std::string(reinterpret_cast<const char*>(base64), static_cast<std::size_t>(length));
}

}  // namespace idem::test
