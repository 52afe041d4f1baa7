#pragma once

#include "core/record/sealed_parts.hpp"

#include <idem/open_store.hpp>
#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <string>
#include <vector>

/// What a store wrapper seals and opens with.
namespace idem {

/// evidence_of() of an event that keeps its answer (event_source.hpp). Other texts are for people.
bool holds_an_answer(std::string_view evidence) noexcept;

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

  using Opened = std::expected<void, StoreError>;
  Opened open(StoredResponse& response, const SealedFor& bound) const;
  Opened open_request(std::string& request, const SealedFor& bound) const;
  Opened open_evidence(std::string& text, const SealedFor& bound) const;

  /// What brings a record, as it is stored, under the newest key: fills in `verb`, which has its
  /// id. Otherwise the reply: wrong_state: there is nothing to do; too_early: its request runs.
  /// What lies in clear is sealed only where it would be replayed.
  std::optional<StoreResult> plan(Record record, Reseal& verb) const;

 private:
  std::optional<StoreResult> plan_answer(Record record, Reseal& verb) const;
  std::optional<StoreResult> plan_request(Record record, Reseal& verb) const;
  bool accepts_clear(const StoredResponse& response, const RecordId& id) const;
  std::expected<const NamedKey*, StoreError> key_for(
      const std::expected<KeyRef, std::string_view>& ref, const RecordId& id,
      std::string_view what) const;

  std::vector<NamedKey> keys_;
  bool accept_clear_;
};

}  // namespace idem
