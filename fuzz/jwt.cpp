// Bearer tokens and key sets. No token is believed that was not signed under the secret; what is
// believed names a scope within its limits; each octet string has one base64url spelling; a key set
// of any bytes is accepted or refused.
#include "gateway/auth/jwt/jwt.hpp"

#include "core/bytes/base64.hpp"
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "gateway/auth/jwt/key_set.hpp"

#include <idem/limits.hpp>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace idem::fuzz {
namespace {

using gateway::JwtVerifier;
using Moment = std::chrono::sys_time<Millis>;

constexpr std::string_view secret = "a secret of the fuzzer, 32 bytes or more";
constexpr Moment now{Millis(1'800'000'000'000)};
constexpr std::string_view header = R"({"alg":"HS256"})";
constexpr std::string_view payload = R"({"iss":"i","exp":1800000600,"tenant":"acme"})";

std::string encoded(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
  while (out.ends_with('=')) out.pop_back();
  return out;
}

std::string signature_of(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return encoded({reinterpret_cast<const char*>(digest.data()), size});
}

std::string signed_token(std::string_view head, std::string_view claims) {
  const std::string text = encoded(head) + '.' + encoded(claims);
  return text + '.' + signature_of(text);
}

const JwtVerifier& verifier() {
  static const auto made = [] {
    std::string name = (std::filesystem::temp_directory_path() / "idem-fuzz-XXXXXX").string();
    const int file = ::mkstemp(name.data());
    check(file >= 0, "there is a place for the secret");
    std::ofstream(name, std::ios::binary) << secret;
    auto loaded = JwtVerifier::load({.algorithm = "HS256",
                                     .key_file = name,
                                     .jwks_file = {},
                                     .issuer = "i",
                                     .claim = "tenant"});
    std::filesystem::remove(name);
    check(loaded.has_value(), "the secret is taken");
    return *loaded;
  }();
  return *made;
}

/// True when it was believed.
bool check_token(std::string_view token) {
  const ExactBytes bytes(token);
  const auto holder = verifier().verify(bytes.view(), now);
  if (!holder) return false;
  const auto dot = token.rfind('.');
  check(token.substr(dot + 1) == signature_of(token.substr(0, dot)), "it is signed");
  check(token.size() <= limits::jwt_bytes_max, "it is within its limit");
  const auto mark = holder->scope.rfind('#');
  check(mark != std::string::npos && holder->scope.size() - mark == 33, "the issuer is named");
  check(mark > 0 && mark <= limits::scope_bytes_max, "the claim is within its limit");
  check(std::ranges::none_of(holder->scope,
                             [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
        "the claim can be shown");
  check(holder->expires_at > now, "it has not expired");
  return true;
}

}  // namespace

void jwt(std::string_view input) {
  const std::string text = with_runs(input);
  if (const auto bytes = from_base64url(text)) {
    check(encoded(*bytes) == text, "there is one spelling");
  }
  check_token(text);
  check_token(signed_token(text, payload));
  check_token(signed_token(header, text));
  check(check_token(signed_token(header, payload)), "a good token is believed");
  for (const auto algorithm :
       {gateway::JwtAlgorithm::hs256, gateway::JwtAlgorithm::es256, gateway::JwtAlgorithm::eddsa}) {
    const ExactBytes bytes(text);
    const auto keys = gateway::KeySet::from_jwks(algorithm, bytes.view());
    check(keys || !keys.error().empty(), "a refusal says why");
  }
}

}  // namespace idem::fuzz
