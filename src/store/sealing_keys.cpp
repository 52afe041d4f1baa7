#include "store/sealing_keys.hpp"

#include "core/exchange/answers.hpp"

#include <algorithm>

namespace idem {
namespace {

StoreError damaged(const RecordId& id, std::string why) {
  return {StoreError::Code::damaged, std::move(why), id};
}

StoreError does_not_open(const RecordId& id, std::string_view what) {
  return damaged(id, std::string(what) +
                         " does not open: it was changed, cut, or sealed for another record, "
                         "scope, attempt or state");
}

}  // namespace

SealingKeys::SealingKeys(const EncryptionSettings& settings)
    : accept_clear_(settings.accept_clear || settings.secrets.empty()) {
  for (const Secret& secret : settings.secrets) keys_.push_back(named_key(secret));
}

const CipherKey* SealingKeys::find(const KeyRef& ref) const noexcept {
  const auto found = std::ranges::find(keys_, ref, &NamedKey::ref);
  return found != keys_.end() ? &found->key : nullptr;
}

// A store writes one answer by itself: that a stored request was never run in its time.
bool SealingKeys::accepts_clear(const StoredResponse& response, const RecordId& id) const {
  if (accept_clear_) return true;
  const WireAnswer ours = timed_out_answer(id);
  return response.status == ours.status && response.headers == ours.headers &&
         response.body == ours.body;
}

std::expected<const CipherKey*, StoreError> SealingKeys::key_for(
    const std::expected<KeyRef, std::string_view>& ref, const RecordId& id,
    std::string_view what) const {
  if (!ref)
    return std::unexpected(damaged(id, std::string(what) + ": " + std::string(ref.error())));
  if (const CipherKey* const key = find(*ref)) return key;
  return std::unexpected(damaged(
      id, std::string(what) + " is sealed under the key " + to_hex(ref->name) +
              (seals() ? ", which none of encryption.secret_files gives: add the file to the list"
                       : ", and there are no encryption.secret_files")));
}

SealingKeys::Opened SealingKeys::open(StoredResponse& response, const SealedFor& bound) const {
  constexpr std::string_view what = "its answer";
  if (!is_sealed(response)) {
    if (accepts_clear(response, bound.id)) return {};
    return std::unexpected(
        damaged(bound.id, "its answer is in clear, and encryption.accept_clear is false"));
  }
  const auto key = key_for(key_of(response), bound.id, what);
  if (!key) return std::unexpected(key.error());
  if (open_answer(**key, bound, response)) return {};
  return std::unexpected(does_not_open(bound.id, what));
}

SealingKeys::Opened SealingKeys::open_request(std::string& request, const SealedFor& bound) const {
  constexpr std::string_view what = "its stored request";
  if (!is_sealed_request(request)) {
    if (accept_clear_) return {};
    return std::unexpected(
        damaged(bound.id, "its stored request is in clear, and encryption.accept_clear is false"));
  }
  const auto key = key_for(key_of_request(request), bound.id, what);
  if (!key) return std::unexpected(key.error());
  if (idem::open_request(**key, bound, request)) return {};
  return std::unexpected(does_not_open(bound.id, what));
}

SealingKeys::Opened SealingKeys::open_evidence(std::string& text, const SealedFor& bound) const {
  constexpr std::string_view what = "a line of its evidence";
  if (!is_sealed_evidence(text)) return {};
  const auto key = key_for(key_of_evidence(text), bound.id, what);
  if (!key) return std::unexpected(key.error());
  if (idem::open_evidence(**key, bound, text)) return {};
  return std::unexpected(does_not_open(bound.id, what));
}

}  // namespace idem
