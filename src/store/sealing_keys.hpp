#pragma once

#include "core/record/sealed_parts.hpp"

#include <idem/open_store.hpp>
#include <idem/store.hpp>

#include <expected>
#include <string>
#include <vector>

/// What a store wrapper seals and opens with.
namespace idem {

/// The keys of EncryptionSettings::secrets, and what opens under them. Immutable.
class SealingKeys {
 public:
  explicit SealingKeys(const EncryptionSettings& settings);

  /// False: there are no secrets.
  bool seals() const noexcept { return !keys_.empty(); }
  const NamedKey& newest() const noexcept { return keys_.front(); }
  /// Null: no secret gives it.
  const CipherKey* find(const KeyRef& ref) const noexcept;

  // ---- opening; what is in clear and accepted stays as it is ----

  using Opened = std::expected<void, StoreError>;
  Opened open(StoredResponse& response, const SealedFor& bound) const;
  Opened open_request(std::string& request, const SealedFor& bound) const;
  Opened open_evidence(std::string& text, const SealedFor& bound) const;

 private:
  bool accepts_clear(const StoredResponse& response, const RecordId& id) const;
  std::expected<const CipherKey*, StoreError> key_for(
      const std::expected<KeyRef, std::string_view>& ref, const RecordId& id,
      std::string_view what) const;

  std::vector<NamedKey> keys_;
  bool accept_clear_;
};

}  // namespace idem
