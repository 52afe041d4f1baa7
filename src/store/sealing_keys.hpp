#pragma once

#include "core/record/sealed_parts.hpp"
#include "store/scope_keys.hpp"

#include <idem/open_store.hpp>
#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <string>
#include <vector>

/// What a store wrapper seals and opens with.
namespace idem {

/// evidence_of() of an event that keeps its answer (event_source.hpp). Other texts are for people.
bool holds_an_answer(std::string_view evidence);

/// What became of a part that was to be opened.
enum class Kept : std::uint8_t {
  whole,
  shredded,   ///< An operator deleted the key of its scope.
  elsewhere,  ///< It needs the keys of its scope: read them, and open it again.
};
using Opened = std::expected<Kept, StoreError>;

/// A shredded answer is one of which only the status is known.
void drop_content(StoredResponse& response);

/// The keys of EncryptionSettings::secrets, and what opens under them. Immutable.
class SealingKeys {
 public:
  explicit SealingKeys(const EncryptionSettings& settings);

  /// False: there are no secrets.
  bool seals() const noexcept { return !keys_.empty(); }
  const NamedKey& newest() const noexcept { return keys_.front(); }
  /// Null: no secret gives it.
  const NamedKey* find(const KeyRef& ref) const noexcept;

  // ---- opening; what is in clear and accepted stays as it is ----
  // `ring`: the keys of the scope; null: they were not read, and `elsewhere` leaves the part as it
  // is. Only an answer is ever `shredded`; other parts are damaged then.

  Opened open(StoredResponse& response, const SealedFor& bound, const ScopeRing* ring) const;
  Opened open_request(std::string& request, const SealedFor& bound, const ScopeRing* ring) const;
  Opened open_evidence(std::string& text, const SealedFor& bound, const ScopeRing* ring) const;
  /// A line that does not open is damaged, and says why.
  void open_line(JournalLine& line, std::string_view journal) const;

  /// Whether a part is under a key of its scope.
  static bool is_of_scope(const std::expected<KeyRef, std::string_view>& ref) {
    return ref && ref->kind == KeyKind::scope;
  }
  static bool is_of_scope(const Record& record);

  /// What brings a record, as it is stored, under the key `to`: fills in `verb`, which has its id.
  /// Otherwise the reply: wrong_state: there is nothing to do; too_early: its request runs. What
  /// lies in clear is sealed only where it would be replayed.
  std::optional<StoreResult> plan(Record record, Reseal& verb, const NamedKey& to,
                                  const ScopeRing* ring) const;

 private:
  std::optional<StoreResult> plan_answer(Record record, Reseal& verb, const NamedKey& to,
                                         const ScopeRing* ring) const;
  std::optional<StoreResult> plan_request(Record record, Reseal& verb, const NamedKey& to,
                                          const ScopeRing* ring) const;
  bool accepts_clear(const StoredResponse& response, const RecordId& id) const;
  std::expected<const NamedKey*, StoreError> key_for(
      const std::expected<KeyRef, std::string_view>& ref, const RecordId& id, std::string_view what,
      const ScopeRing* ring) const;
  std::string why_unknown(const KeyName& name) const;
  std::string why_not_in(const ScopeRing* ring, const KeyName& name) const;
  bool is_elsewhere(const std::expected<KeyRef, std::string_view>& ref,
                    const ScopeRing* ring) const;

  std::vector<NamedKey> keys_;
  bool accept_clear_;
};

}  // namespace idem
