#include "admin/audit/audit_line.hpp"

#include "core/bytes/digests.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/bytes/utf8.hpp"
#include "json/value.hpp"
#include "json/writer.hpp"

#include <idem/limits.hpp>

#include <array>
#include <set>

namespace idem::admin {
namespace {

constexpr std::string_view hash_member = ",\"hash\":\"";
constexpr std::size_t hash_digits = 64;

using Member = std::pair<std::string_view, std::string AuditEntry::*>;
/// The texts of a line in their order.
constexpr std::array<Member, 9> texts{{{"who", &AuditEntry::who},
                                       {"role", &AuditEntry::role},
                                       {"login", &AuditEntry::login},
                                       {"peer", &AuditEntry::peer},
                                       {"what", &AuditEntry::what},
                                       {"ref", &AuditEntry::ref},
                                       {"reason", &AuditEntry::reason},
                                       {"before", &AuditEntry::before},
                                       {"after", &AuditEntry::after}}};

Digest mac_of(const Secret& secret, std::string_view body) {
  thread_local KeyedDigest digest("idem audit line");
  return digest.of(secret, body);
}

std::string cut(const std::string& text, std::size_t bytes_max) {
  return text.size() <= bytes_max ? text : utf8_of(text, bytes_max) + "...";
}

std::string body_of(std::uint64_t seq, StoreTime at, const AuditEntry& entry, std::string_view prev,
                    std::string_view secret, std::size_t text_max) {
  json::Writer out;
  out.begin_object();
  out.member("seq", seq);
  out.member("at", to_rfc3339(at));
  for (const auto& [name, text] : texts) out.member(name, cut(entry.*text, text_max));
  out.name("of");
  if (entry.of) {
    out.number(*entry.of);
  } else {
    out.null();
  }
  if (!entry.settings.empty()) {
    out.name("settings");
    out.begin_object();
    std::set<std::string_view> names;  // A reader refuses an object with a name twice.
    for (const auto& [name, digest] : entry.settings) {
      if (names.insert(name).second) out.member(name, digest);
    }
    out.end_object();
  }
  out.member("secret", secret);
  out.member("prev", prev);
  std::string body = out.take();
  return body;  // Without the closing brace: the hash comes before it.
}

std::optional<std::uint64_t> number_in(const json::Value& object, std::string_view name) {
  const auto* const member = object.find(name);
  const auto* const number = member ? std::get_if<std::int64_t>(&member->is) : nullptr;
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

const std::string* text_in(const json::Value& object, std::string_view name) {
  const auto* const member = object.find(name);
  return member ? std::get_if<std::string>(&member->is) : nullptr;
}

/// The bytes that the hash covers, and the hash.
std::optional<std::pair<std::string_view, std::string_view>> split(std::string_view bytes) {
  const std::size_t tail = hash_member.size() + hash_digits + 2;
  if (bytes.size() <= tail || !bytes.ends_with("\"}")) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - tail);
  if (bytes.substr(body.size(), hash_member.size()) != hash_member) return std::nullopt;
  return std::pair(body, bytes.substr(body.size() + hash_member.size(), hash_digits));
}

}  // namespace

std::string write_audit_line(std::uint64_t seq, StoreTime at, const AuditEntry& entry,
                             std::string_view prev, const Secret& secret) {
  const std::string id = secret_id(secret);
  std::string body = body_of(seq, at, entry, prev, id, limits::audit_text_bytes_max);
  const std::size_t most = limits::journal_line_bytes_max - hash_member.size() - hash_digits - 2;
  if (body.size() > most) {
    // Escapes may have made it so long, or the digests of very many routes.
    AuditEntry shorter = entry;
    shorter.settings.clear();
    body = body_of(seq, at, shorter, prev, id, limits::audit_text_bytes_max / 8);
  }
  return body + std::string(hash_member) + to_hex(mac_of(secret, body)) + "\"}";
}

std::optional<AuditLine> parse_audit_line(std::string_view bytes) {
  const auto parts = split(bytes);
  const auto parsed = json::parse(bytes);
  if (!parts || !parsed) return std::nullopt;
  AuditLine line;
  const auto seq = number_in(*parsed, "seq");
  const auto* const at = text_in(*parsed, "at");
  const auto* const prev = text_in(*parsed, "prev");
  const auto* const secret = text_in(*parsed, "secret");
  if (!seq || at == nullptr || prev == nullptr || secret == nullptr) return std::nullopt;
  for (const auto& [name, member] : texts) {
    const auto* const text = text_in(*parsed, name);
    if (text == nullptr) return std::nullopt;
    line.entry.*member = *text;
  }
  line.seq = *seq;
  line.at = *at;
  line.prev = *prev;
  line.secret = *secret;
  line.hash = std::string(parts->second);
  line.entry.of = number_in(*parsed, "of");
  const auto* const settings = parsed->find("settings");
  const auto* const members = settings ? std::get_if<json::Object>(&settings->is) : nullptr;
  if (members != nullptr) {
    for (const json::Member& one : *members) {
      const auto* const digest = std::get_if<std::string>(&one.value.is);
      if (digest == nullptr) return std::nullopt;
      line.entry.settings.emplace_back(one.name, *digest);
    }
  }
  return line;
}

bool is_made_by(std::string_view bytes, const Secret& secret) {
  const auto parts = split(bytes);
  return parts && to_hex(mac_of(secret, parts->first)) == parts->second;
}

std::string link_of(std::string_view bytes) { return to_hex(sha256(bytes)); }

std::string first_link(const Secret& scope_secret) {
  thread_local KeyedDigest digest("idem audit begins");
  return to_hex(digest.of(scope_secret, ""));
}

std::string setting_digest(const Secret& secret, std::string_view name, std::string_view value) {
  constexpr std::size_t digits = 16;
  thread_local KeyedDigest digest("idem audit setting");
  const std::string framed = std::to_string(name.size()) + ':' + std::string(name);
  return to_hex(digest.of(secret, framed + std::string(value))).substr(0, digits);
}

}  // namespace idem::admin
