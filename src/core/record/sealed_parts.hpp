#pragma once

#include "core/bytes/envelope.hpp"

#include <idem/record.hpp>

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Stored answers and stored requests, encrypted (envelope.hpp). A store sees an answer with the
/// same status, a body of the same length, and one field; and a request as bytes.
///
/// What is sealed is bound to its scope, its record, its attempt's fence and its record's state; an
/// answer also to its status. So bytes that an attacker moved to another record, or changed, do not
/// open.
namespace idem {

/// The name of that field. No client or upstream can send it: its prefix is reserved.
inline constexpr std::string_view sealed_field = "idem-sealed";

/// What wraps the keys: a key from a secret of the settings, or a scope's own, which lies in the
/// store.
enum class KeyKind : std::uint8_t { secret = 1, scope = 2 };
/// Which key opens something.
struct KeyRef {
  KeyKind kind = KeyKind::secret;
  KeyName name{};
  bool operator==(const KeyRef&) const = default;
};
struct NamedKey {
  KeyRef ref;
  CipherKey key;
};
NamedKey named_key(const Secret& secret);
/// What a scope's random bytes give, in the same way.
NamedKey key_of_scope(const CipherKey& random);

struct SealedFor {
  std::string_view scope;
  RecordId id;
  Fence fence = 0;  ///< Of the attempt that made the answer. A request has none.
};

/// Its head grows by a third and at most `sealed_head_extra_bytes`; its body keeps its length.
void seal_answer(const NamedKey& with, const SealedFor& bound, StoredResponse& response);
inline constexpr std::size_t sealed_head_extra_bytes = 192;
/// True if one of its fields has that name.
bool is_sealed(const StoredResponse& response) noexcept;
/// Error: static text that says why nothing can open it.
std::expected<KeyRef, std::string_view> key_of(const StoredResponse& sealed);
/// False if it was not sealed with this key and for this. Then `sealed` is as it was, or means
/// nothing.
bool open_answer(const NamedKey& with, const SealedFor& bound, StoredResponse& sealed);
/// Wraps its key anew; body and fields stay encrypted as they are. False: it was wrapped by another
/// key, or was changed.
bool rewrap_answer(const NamedKey& from, const NamedKey& to, StoredResponse& sealed);

/// The same for a stored request, which has no attempt of its own. A store may put it into a record
/// that it finds under another name of the same key: it opens in each of `ids`, and nowhere else.
void seal_request(const NamedKey& with, std::string_view scope, std::span<const RecordId> ids,
                  std::string& request);
bool is_sealed_request(std::string_view request) noexcept;
std::expected<KeyRef, std::string_view> key_of_request(std::string_view sealed);
bool open_request(const NamedKey& with, const SealedFor& bound, std::string& sealed);
bool rewrap_request(const NamedKey& from, const NamedKey& to, std::string& sealed);

/// The same for a text of the evidence log that holds an answer, as a text; the fence is its
/// line's. A line outlives its record, so no scope binds it but by the record's id.
void seal_evidence(const NamedKey& with, const SealedFor& bound, std::string& text);
bool is_sealed_evidence(std::string_view text) noexcept;
std::expected<KeyRef, std::string_view> key_of_evidence(std::string_view sealed);
bool open_evidence(const NamedKey& with, const SealedFor& bound, std::string& sealed);

/// The same for a line of a journal: it opens under the journal's name and its own number alone.
struct LinePlace {
  std::string_view journal;
  std::uint64_t number = 0;
};
void seal_line(const NamedKey& with, const LinePlace& place, std::string& line);
inline constexpr std::size_t sealed_line_extra_bytes = 77;
bool is_sealed_line(std::string_view line) noexcept;
std::expected<KeyRef, std::string_view> key_of_line(std::string_view sealed);
bool open_line(const NamedKey& with, const LinePlace& place, std::string& sealed);

}  // namespace idem
