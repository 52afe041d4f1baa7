#include "core/evidence/event_signature.hpp"
#include <idem/worker_limits.hpp>

#include "core/bytes/ascii.hpp"
#include "core/bytes/base64.hpp"
#include "core/bytes/digests.hpp"
#include "core/bytes/hex.hpp"

#include <openssl/crypto.h>

#include <charconv>

namespace idem {
namespace {

constexpr std::string_view standard_prefix = "whsec_";
constexpr std::size_t standard_bytes_min = 24;
constexpr std::size_t standard_bytes_max = 64;
constexpr std::size_t secret_bytes_min = 16;
constexpr const char* forged = "no signature of ours fits";

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::int64_t> seconds_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// One of the signatures in the head belongs to one of the secrets. Compares all of them.
template <class Spell>
std::expected<void, std::string> check_offered(const EventSignature& by,
                                               const std::vector<std::string>& offered,
                                               const std::string& text, const Spell& spell) {
  bool found = false;
  for (const std::string& secret : by.secrets) {
    const auto mac = hmac_sha256(secret, text);
    if (!mac) return std::unexpected("OpenSSL refuses to make the HMAC-SHA-256 to compare it with");
    const std::string expected = spell(view_of(*mac));
    for (const std::string& one : offered) found = same(one, expected) || found;
  }
  if (!found) return std::unexpected(forged);
  return {};
}

std::vector<std::string> parts(std::string_view text, char separator) {
  std::vector<std::string> all;
  while (!text.empty() && all.size() < limits::event_signatures_max) {
    std::string_view part = take_until(text, separator);
    while (part.starts_with(' ')) part.remove_prefix(1);
    all.emplace_back(part);
  }
  return all;
}

std::expected<void, std::string> check_time(std::string_view timestamp, std::int64_t now) {
  const auto at = seconds_in(timestamp);
  if (!at) return std::unexpected("it has no timestamp");
  const auto tolerance = std::chrono::duration_cast<std::chrono::seconds>(limits::event_tolerance);
  if (*at < now - tolerance.count() || *at > now + tolerance.count()) {
    return std::unexpected("its timestamp is too far from now");
  }
  return {};
}

std::expected<void, std::string> check_standard(const EventSignature& by, const SignedHead& head,
                                                std::string_view body, std::int64_t now) {
  if (auto timely = check_time(head.timestamp, now); !timely) return timely;
  if (head.id.empty()) return std::unexpected("it has no webhook-id");
  std::string text(head.id);
  text += '.';
  text += head.timestamp;
  text += '.';
  text += body;
  std::vector<std::string> offered;
  for (const std::string& one : parts(head.signature, ' ')) {
    if (one.starts_with("v1,")) offered.push_back(one.substr(3));
  }
  return check_offered(by, offered, text, to_base64);
}

std::expected<void, std::string> check_stripe(const EventSignature& by, const SignedHead& head,
                                              std::string_view body, std::int64_t now) {
  std::string timestamp;
  std::vector<std::string> offered;
  for (const std::string& one : parts(head.signature, ',')) {
    if (one.starts_with("t=") && timestamp.empty()) timestamp = one.substr(2);
    if (one.starts_with("v1=")) offered.push_back(lower_case(one.substr(3)));
  }
  if (auto timely = check_time(timestamp, now); !timely) return timely;
  const std::string text = timestamp + "." + std::string(body);
  return check_offered(by, offered, text, hex_of);
}

std::expected<void, std::string> check_hmac(const EventSignature& by, const SignedHead& head,
                                            std::string_view body) {
  if (!head.signature.starts_with(by.prefix)) return std::unexpected(forged);
  const std::string_view offered = head.signature.substr(by.prefix.size());
  const std::string text(body);
  const auto in_hex = check_offered(by, {lower_case(offered)}, text, hex_of);
  return in_hex ? in_hex : check_offered(by, {std::string(offered)}, text, to_base64);
}

}  // namespace

std::expected<void, std::string> check_signature(const EventSignature& by, const SignedHead& head,
                                                 std::string_view body, std::int64_t now) {
  switch (by.scheme) {
    case EventSignature::Scheme::standard:
      return check_standard(by, head, body, now);
    case EventSignature::Scheme::stripe:
      return check_stripe(by, head, body, now);
    case EventSignature::Scheme::hmac:
      return check_hmac(by, head, body);
  }
  return std::unexpected(forged);
}

std::optional<std::string> event_secret(EventSignature::Scheme scheme, std::string_view text) {
  if (scheme != EventSignature::Scheme::standard) {
    if (text.size() < secret_bytes_min) return std::nullopt;
    return std::string(text);
  }
  if (!text.starts_with(standard_prefix)) return std::nullopt;
  auto bytes = from_base64(text.substr(standard_prefix.size()));
  if (!bytes || bytes->size() < standard_bytes_min || bytes->size() > standard_bytes_max) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace idem
