#pragma once

#include "core/bytes/envelope.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Keys of scopes (docs/internals/exchange.md). Each key of a scope lies in a journal of its own,
/// `scope-key/DIGEST/NUMBER`; the one with the highest number seals. A line has the key and the
/// names of those before it, sealed as any line of a journal; the last line counts.
namespace idem {

inline constexpr std::string_view scope_key_journals = "scope-key/";
/// What the names of the journals of a scope's keys begin with: its digest, and a slash.
std::string scope_key_prefix(std::string_view scope);
/// The journal of the key with this number.
std::string scope_key_journal(std::string_view prefix, std::uint64_t number);
/// What `journal` begins with as the journal of a key; empty: it is none.
std::string_view prefix_of_scope_key(std::string_view journal);
/// Its number; none: it is no such journal.
std::optional<std::uint64_t> number_of_scope_key(std::string_view journal);

/// What a line of such a journal has.
struct ScopeKeyLine {
  CipherKey key{};                ///< Random.
  std::vector<KeyName> former{};  ///< The keys of the scope before it.
  std::string text() const;
  static std::optional<ScopeKeyLine> parse(std::string_view text);
};

}  // namespace idem
