#include "store/redis/cache_entry.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "store/redis/rows.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>

namespace idem::redis {
namespace {

constexpr std::uint8_t entry_version = 1;
constexpr std::size_t mac_bytes = 16;
/// Orders entries by age, in digits: fence, kind, and of in_flight the end of the lease, because a
/// renewal moves it. cache_put.lua compares it as text.
constexpr std::size_t order_bytes = 20 + 1 + 20;

}  // namespace

std::string CacheCodec::store_tag() { return to_hex(tag_.of(secret_, "")).substr(0, 16); }

Digest CacheCodec::token_digest(const Token& token) {
  return token_.of(secret_, {reinterpret_cast<const char*>(token.bytes.data()), 16});
}

Digest CacheCodec::mac(const RecordId& id, std::string_view bytes) {
  std::string message(bytes_of(id));
  message += bytes;
  return mac_.of(secret_, message);
}

std::string CacheCodec::encode(const RecordId& id, const CacheEntry& entry) {
  const bool is_moving = entry.kind == CacheEntry::Kind::in_flight;
  std::string out = fmt::format("{:020}{}{:020}", entry.fence, static_cast<unsigned>(entry.kind),
                                is_moving ? to_bits(entry.until) : 0);
  const std::size_t before = out.size();
  out.resize(before + 1 + 1 + 8 + 8 + 4 + 32 + 8 + 8 + 32 + 8);
  ByteWriter to(out.data() + before);
  to.number(entry_version);
  to.number(static_cast<std::uint8_t>(entry.kind));
  to.number(entry.fence);
  to.number(entry.generation);
  to.number(entry.fingerprint.version);
  to.bytes(entry.fingerprint.digest);
  to.number(to_bits(entry.until));
  to.number(to_bits(entry.believed_until));
  to.bytes(entry.token);
  to.number(to_bits(entry.completed_at));
  if (entry.response) out += to_answer_value(id, *entry.response);
  const Digest digest = mac(id, out);
  out.append(reinterpret_cast<const char*>(digest.data()), mac_bytes);
  return out;
}

std::optional<CacheEntry> CacheCodec::decode(const RecordId& id, std::string_view bytes) {
  if (bytes.size() < order_bytes + mac_bytes) return std::nullopt;
  const std::string_view its_mac = bytes.substr(bytes.size() - mac_bytes);
  bytes.remove_suffix(mac_bytes);
  const Digest digest = mac(id, bytes);
  if (CRYPTO_memcmp(digest.data(), its_mac.data(), mac_bytes) != 0) return std::nullopt;
  bytes.remove_prefix(order_bytes);
  ByteReader in(bytes);
  const auto version = in.number<std::uint8_t>();
  const auto kind = in.number<std::uint8_t>();
  CacheEntry entry;
  entry.fence = in.number<std::uint64_t>();
  entry.generation = in.number<std::uint64_t>();
  entry.fingerprint.version = in.number<std::uint32_t>();
  in.bytes(entry.fingerprint.digest);
  entry.until = from_bits(in.number<std::uint64_t>());
  entry.believed_until = from_bits(in.number<std::uint64_t>());
  in.bytes(entry.token);
  entry.completed_at = from_bits(in.number<std::uint64_t>());
  if (in.is_cut_short() || version != entry_version || kind < 1 || kind > 3) return std::nullopt;
  entry.kind = static_cast<CacheEntry::Kind>(kind);
  if (entry.kind != CacheEntry::Kind::completed) return entry;
  constexpr std::size_t head = 1 + 1 + 8 + 8 + 4 + 32 + 8 + 8 + 32 + 8;
  auto response = parse_answer_value(id, bytes.substr(head));
  if (!response) return std::nullopt;
  entry.response = std::move(*response);
  return entry;
}

}  // namespace idem::redis
