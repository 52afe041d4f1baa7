#pragma once

#include <idem/fingerprint.hpp>
#include <idem/record.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::admin {

/// The journal of the audit.
inline constexpr std::string_view audit_journal = "audit";

/// What a line says about one decision, or about changed settings. An intent says who wants what; a
/// second line, whose `of` is the intent's number, says what became of it.
struct AuditEntry {
  std::string who{};
  std::string role{};
  std::string login{};  ///< How the caller proved that: token, operator_token, proxy, certificate.
  std::string peer{};   ///< The address of the connection.
  std::string what{};   ///< "keys.resolve": see endpoints(); "config.start", "config.reload".
  std::string ref{};    ///< The record, the message, the token's name.
  std::string reason{};
  std::string before{};
  std::string after{};  ///< Of an outcome, and of changed settings.
  std::optional<std::uint64_t> of{};
  /// All settings with a keyed digest of each, so that a later start can name those that changed.
  std::vector<std::pair<std::string, std::string>> settings{};
  bool operator==(const AuditEntry&) const = default;
};

/// A line as it lies in the journal.
struct AuditLine {
  std::uint64_t seq = 0;
  std::string at;  ///< RFC 3339, by the store's clock.
  AuditEntry entry;
  std::string prev;    ///< link_of() of the line before.
  std::string secret;  ///< secret_id() of the one that made `hash`.
  std::string hash;
};

/// The bytes of a line: one JSON object, whose last member `hash` is the HMAC-SHA-256 of all before
/// it, under a key that is derived from `secret`. Long texts are cut, so that the line fits.
std::string write_audit_line(std::uint64_t seq, StoreTime at, const AuditEntry& entry,
                             std::string_view prev, const Secret& secret);
/// None: these bytes are no line of an audit. Does not look at the hash.
std::optional<AuditLine> parse_audit_line(std::string_view bytes);
/// Whether `secret` made the line with these bytes.
bool is_made_by(std::string_view bytes, const Secret& secret);

/// The name of a line for the next one: SHA-256 of its bytes, in hexadecimal.
std::string link_of(std::string_view bytes);
/// `prev` of the first line, which binds the chain to its store.
std::string first_link(const Secret& scope_secret);
/// The digest of a setting's value in AuditEntry::settings.
std::string setting_digest(const Secret& secret, std::string_view name, std::string_view value);

}  // namespace idem::admin
