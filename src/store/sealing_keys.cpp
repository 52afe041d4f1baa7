#include "store/sealing_keys.hpp"

#include "core/exchange/answers.hpp"
#include "core/record/stored_response_codec.hpp"

#include <algorithm>

namespace idem {
namespace {

using Ended = Resolve::Verdict;

constexpr std::string_view its_answer = "its answer";
constexpr std::string_view its_request = "its stored request";

StoreResult reply(Ended verdict, const Record& record) {
  return Resolve::Reply{verdict, record.state, false};
}

StoreError damaged(const RecordId& id, std::string why) {
  return {StoreError::Code::damaged, std::move(why), id};
}

StoreError does_not_open(const RecordId& id, std::string_view what) {
  return damaged(id, std::string(what) +
                         " does not open: it was changed, cut, or sealed for another record, "
                         "scope, attempt or state");
}

}  // namespace

bool holds_an_answer(std::string_view evidence) noexcept {
  return evidence.find("\"kept\":") != evidence.npos;
}

SealingKeys::SealingKeys(const EncryptionSettings& settings)
    : accept_clear_(settings.accept_clear || settings.secrets.empty()) {
  for (const Secret& secret : settings.secrets) keys_.push_back(named_key(secret));
}

const NamedKey* SealingKeys::find(const KeyRef& ref) const noexcept {
  const auto found = std::ranges::find(keys_, ref, &NamedKey::ref);
  return found != keys_.end() ? &*found : nullptr;
}

// A store writes one answer by itself: that a stored request was never run in its time.
bool SealingKeys::accepts_clear(const StoredResponse& response, const RecordId& id) const {
  if (accept_clear_) return true;
  const WireAnswer ours = timed_out_answer(id);
  return response.status == ours.status && response.headers == ours.headers &&
         response.body == ours.body;
}

std::expected<const NamedKey*, StoreError> SealingKeys::key_for(
    const std::expected<KeyRef, std::string_view>& ref, const RecordId& id,
    std::string_view what) const {
  if (!ref)
    return std::unexpected(damaged(id, std::string(what) + ": " + std::string(ref.error())));
  if (const NamedKey* const key = find(*ref)) return key;
  return std::unexpected(damaged(
      id, std::string(what) + " is sealed under the key " + to_hex(ref->name) +
              (seals() ? ", which none of encryption.secret_files gives: add the file to the list"
                       : ", and there are no encryption.secret_files")));
}

SealingKeys::Opened SealingKeys::open(StoredResponse& response, const SealedFor& bound) const {
  if (!is_sealed(response)) {
    if (accepts_clear(response, bound.id)) return {};
    return std::unexpected(
        damaged(bound.id, "its answer is in clear, and encryption.accept_clear is false"));
  }
  const auto key = key_for(key_of(response), bound.id, its_answer);
  if (!key) return std::unexpected(key.error());
  if (open_answer(**key, bound, response)) return {};
  return std::unexpected(does_not_open(bound.id, its_answer));
}

SealingKeys::Opened SealingKeys::open_request(std::string& request, const SealedFor& bound) const {
  if (!is_sealed_request(request)) {
    if (accept_clear_) return {};
    return std::unexpected(
        damaged(bound.id, "its stored request is in clear, and encryption.accept_clear is false"));
  }
  const auto key = key_for(key_of_request(request), bound.id, its_request);
  if (!key) return std::unexpected(key.error());
  if (idem::open_request(**key, bound, request)) return {};
  return std::unexpected(does_not_open(bound.id, its_request));
}

SealingKeys::Opened SealingKeys::open_evidence(std::string& text, const SealedFor& bound) const {
  constexpr std::string_view what = "a line of its evidence";
  if (!is_sealed_evidence(text)) {
    // The reconciler may settle the record with that answer, which would be sealed then.
    if (accept_clear_ || !holds_an_answer(text)) return {};
    return std::unexpected(
        damaged(bound.id,
                "an answer in its evidence is in clear, and encryption.accept_clear is "
                "false"));
  }
  const auto key = key_for(key_of_evidence(text), bound.id, what);
  if (!key) return std::unexpected(key.error());
  if (idem::open_evidence(**key, bound, text)) return {};
  return std::unexpected(does_not_open(bound.id, what));
}

std::optional<StoreResult> SealingKeys::plan(Record record, Reseal& verb) const {
  if (record.response) return plan_answer(std::move(record), verb);
  if (record.stored_request) return plan_request(std::move(record), verb);
  return reply(Ended::wrong_state, record);
}

std::optional<StoreResult> SealingKeys::plan_answer(Record record, Reseal& verb) const {
  StoredResponse& response = *record.response;
  if (!record.attempt) return reply(Ended::wrong_state, record);  // The store's own, and public.
  verb.fence = record.fence();
  verb.seen = digest_of_stored(response);
  const SealedFor bound{record.scope, record.id, *record.fence()};
  if (!is_sealed(response)) {
    if (const auto accepted = open(response, bound); !accepted) {
      return std::unexpected(accepted.error());
    }
    seal_answer(newest(), bound, response);
  } else {
    const auto ref = key_of(response);
    if (ref == newest().ref) return reply(Ended::wrong_state, record);
    const auto key = key_for(ref, record.id, its_answer);
    if (!key) return std::unexpected(key.error());
    if (!rewrap_answer(**key, newest(), response)) {
      return std::unexpected(does_not_open(record.id, its_answer));
    }
  }
  verb.response = std::move(response);
  return std::nullopt;
}

std::optional<StoreResult> SealingKeys::plan_request(Record record, Reseal& verb) const {
  std::string& request = *record.stored_request;
  const bool is_clear = !is_sealed_request(request);
  const auto ref = key_of_request(request);
  if (!is_clear && ref == newest().ref) return reply(Ended::wrong_state, record);
  if (record.state == State::in_progress) return reply(Ended::too_early, record);
  verb.seen = digest_of_stored(request);
  const SealedFor bound{record.scope, record.id, 0};
  if (is_clear) {
    if (const auto accepted = open_request(request, bound); !accepted) {
      return std::unexpected(accepted.error());
    }
    seal_request(newest(), record.scope, std::span(&record.id, 1), request);
  } else {
    const auto key = key_for(ref, record.id, its_request);
    if (!key) return std::unexpected(key.error());
    if (!rewrap_request(**key, newest(), request)) {
      return std::unexpected(does_not_open(record.id, its_request));
    }
  }
  verb.request = std::move(request);
  return std::nullopt;
}

}  // namespace idem
