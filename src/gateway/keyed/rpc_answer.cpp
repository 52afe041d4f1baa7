#include "gateway/keyed/rpc_answer.hpp"

#include "core/bytes/ascii.hpp"
#include "core/fingerprint/body_form.hpp"
#include "core/fingerprint/media_type.hpp"
#include "core/json/rpc.hpp"
#include "http/head.hpp"

#include <algorithm>
#include <array>

namespace idem::gateway {
namespace {

// Content-Digest, Repr-Digest, Signature, Signature-Input, X-Hub-Signature-256, Content-MD5,
// x-goog-hash, x-amz-checksum-sha256, X-Content-SHA256: what such fields are called, by any vendor.
// A word too many costs no more than the id.
constexpr std::array<std::string_view, 12> words_of_proofs{
    "digest", "signature", "hash", "checksum", "md5",  "hmac",
    "jws",    "sha",       "crc",  "-sig",     "-mac", "integrity"};

bool holds_for_the_bytes(std::string_view field) {
  const std::string name = lower_case(field);
  if (name == "etag" || name == "content-encoding" || name == "content-range") return true;
  return std::ranges::any_of(words_of_proofs,
                             [&](std::string_view word) { return name.contains(word); });
}

}  // namespace

bool answers_rpc(std::string_view body, const WireAnswer& answer) {
  std::size_t types = 0;
  for (const Field& field : answer.headers) {
    if (holds_for_the_bytes(field.name)) return false;
    if (!http::same_name(field.name, "Content-Type")) continue;
    if (!is_json_media(media_type(field.value))) return false;
    ++types;
  }
  if (types != 1) return false;
  const auto asked = rpc_call_id(body);
  const auto answered = asked ? rpc_answer_id(answer.body_bytes()) : std::nullopt;
  return answered && same_rpc_id(*asked, *answered);
}

void put_rpc_id(WireAnswer& answer, std::string_view id) {
  auto own = with_rpc_id(answer.body_bytes(), id);
  if (!own) return;
  answer.shared_body.reset();
  answer.body = std::move(*own);
}

}  // namespace idem::gateway
