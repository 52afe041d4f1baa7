#include "store/sealing_keys.hpp"

#include "core/exchange/answers.hpp"
#include "core/json/place.hpp"
#include "core/json/scalars.hpp"
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

/// Why a part under a scope's key stays as it is: shredded; or about to be, and no rekey takes it
/// away from that.
std::optional<Ended> rests(const std::expected<KeyRef, std::string_view>& ref,
                           const ScopeRing* ring) {
  if (ring == nullptr || !ref || ref->kind != KeyKind::scope) return std::nullopt;
  if (ring->was_shredded(ref->name)) return Ended::wrong_state;
  const NamedKey* const key = ring->find(ref->name);
  return key != nullptr && key != ring->keys.data() ? std::optional(Ended::too_early)
                                                    : std::nullopt;
}

StoreError does_not_open(const RecordId& id, std::string_view what) {
  return damaged(id, std::string(what) +
                         " does not open: it was changed, cut, or sealed for another record, "
                         "scope, attempt or state");
}

}  // namespace

// As the reader of the log looks for it, whatever spelling an attacker chooses.
bool holds_an_answer(std::string_view evidence) {
  return check_json(evidence) && json_at(evidence, "/kept");
}

void drop_content(StoredResponse& response) {
  response.headers.clear();
  response.body.clear();
  response.body_stored = false;
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
    const std::expected<KeyRef, std::string_view>& ref, const RecordId& id, std::string_view what,
    const ScopeRing* ring) const {
  if (!ref)
    return std::unexpected(damaged(id, std::string(what) + ": " + std::string(ref.error())));
  const bool is_of_scope = ref->kind == KeyKind::scope;
  const NamedKey* const key =
      !is_of_scope ? find(*ref) : (ring != nullptr ? ring->find(ref->name) : nullptr);
  if (key != nullptr) return key;
  return std::unexpected(damaged(id, std::string(what) + (is_of_scope ? why_not_in(ring, ref->name)
                                                                      : why_unknown(ref->name))));
}

std::string SealingKeys::why_unknown(const KeyName& name) const {
  return " is sealed under the key " + to_hex(name) +
         (seals() ? ", which none of encryption.secret_files gives: add the file to the list"
                  : ", and there are no encryption.secret_files");
}

std::string SealingKeys::why_not_in(const ScopeRing* ring, const KeyName& name) const {
  if (ring == nullptr) {
    return " is sealed under the key " + to_hex(name) +
           " of its scope, and there are no encryption.secret_files";
  }
  if (ring->was_shredded(name))
    return " was shredded with the key " + to_hex(name) + " of its scope";
  return " is sealed under the key " + to_hex(name) + " of its scope, which is not in the store" +
         (ring->unreadable.empty() ? "" : "; " + ring->unreadable);
}

bool SealingKeys::is_elsewhere(const std::expected<KeyRef, std::string_view>& ref,
                               const ScopeRing* ring) const {
  return ring == nullptr && ref && ref->kind == KeyKind::scope && seals();
}

Opened SealingKeys::open(StoredResponse& response, const SealedFor& bound,
                         const ScopeRing* ring) const {
  if (!is_sealed(response)) {
    if (accepts_clear(response, bound.id)) return Kept::whole;
    return std::unexpected(
        damaged(bound.id, "its answer is in clear, and encryption.accept_clear is false"));
  }
  const auto ref = key_of(response);
  if (is_elsewhere(ref, ring)) return Kept::elsewhere;
  const bool is_of_scope = ring != nullptr && ref && ref->kind == KeyKind::scope;
  if (is_of_scope && ring->was_shredded(ref->name)) return Kept::shredded;
  const auto key = key_for(ref, bound.id, its_answer, ring);
  if (!key) return std::unexpected(key.error());
  if (open_answer(**key, bound, response)) return Kept::whole;
  return std::unexpected(does_not_open(bound.id, its_answer));
}

Opened SealingKeys::open_request(std::string& request, const SealedFor& bound,
                                 const ScopeRing* ring) const {
  if (!is_sealed_request(request)) {
    if (accept_clear_) return Kept::whole;
    return std::unexpected(
        damaged(bound.id, "its stored request is in clear, and encryption.accept_clear is false"));
  }
  const auto ref = key_of_request(request);
  if (is_elsewhere(ref, ring)) return Kept::elsewhere;
  const auto key = key_for(ref, bound.id, its_request, ring);
  if (!key) return std::unexpected(key.error());
  if (idem::open_request(**key, bound, request)) return Kept::whole;
  return std::unexpected(does_not_open(bound.id, its_request));
}

Opened SealingKeys::open_evidence(std::string& text, const SealedFor& bound,
                                  const ScopeRing* ring) const {
  constexpr std::string_view what = "a line of its evidence";
  if (!is_sealed_evidence(text)) {
    // The reconciler may settle the record with that answer, which would be sealed then.
    if (accept_clear_ || !holds_an_answer(text)) return Kept::whole;
    return std::unexpected(
        damaged(bound.id,
                "an answer in its evidence is in clear, and encryption.accept_clear is "
                "false"));
  }
  const auto ref = key_of_evidence(text);
  if (is_elsewhere(ref, ring)) return Kept::elsewhere;
  const auto key = key_for(ref, bound.id, what, ring);
  if (!key) return std::unexpected(key.error());
  if (idem::open_evidence(**key, bound, text)) return Kept::whole;
  return std::unexpected(does_not_open(bound.id, what));
}

// An attacker who writes to the store could put an approval there in clear.
void SealingKeys::open_line(JournalLine& line, std::string_view journal) const {
  if (line.is_damaged) return;
  const auto complain = [&](std::string why) {
    line.is_damaged = true;
    line.why = std::move(why);
  };
  if (!is_sealed_line(line.bytes)) {
    const bool must_be_sealed = journal.starts_with(scope_key_journals);
    if (must_be_sealed) return complain("is in clear");
    if (!accept_clear_) complain("is in clear, and encryption.accept_clear is false");
    return;
  }
  const auto ref = key_of_line(line.bytes);
  if (!ref) return complain("does not open: " + std::string(ref.error()));
  const NamedKey* const key = find(*ref);
  if (key == nullptr) return complain(why_unknown(ref->name).substr(1));
  if (!idem::open_line(*key, {journal, line.seq}, line.bytes)) {
    complain("does not open: it was changed, cut, or written at another place");
  }
}

bool SealingKeys::is_of_scope(const Record& record) {
  return (record.response && is_of_scope(key_of(*record.response))) ||
         (record.stored_request && is_of_scope(key_of_request(*record.stored_request)));
}

std::optional<StoreResult> SealingKeys::plan(Record record, Reseal& verb, const NamedKey& to,
                                             const ScopeRing* ring) const {
  if (record.response) return plan_answer(std::move(record), verb, to, ring);
  if (record.stored_request) return plan_request(std::move(record), verb, to, ring);
  return reply(Ended::wrong_state, record);
}

std::optional<StoreResult> SealingKeys::plan_answer(Record record, Reseal& verb, const NamedKey& to,
                                                    const ScopeRing* ring) const {
  StoredResponse& response = *record.response;
  if (!record.attempt) return reply(Ended::wrong_state, record);  // The store's own, and public.
  verb.fence = record.fence();
  verb.seen = digest_of_stored(response);
  const SealedFor bound{record.scope, record.id, *record.fence()};
  if (!is_sealed(response)) {
    if (const auto accepted = open(response, bound, ring); !accepted) {
      return std::unexpected(accepted.error());
    }
    seal_answer(to, bound, response);
  } else {
    const auto ref = key_of(response);
    if (ref == to.ref) return reply(Ended::wrong_state, record);
    if (const auto stays = rests(ref, ring)) return reply(*stays, record);
    const auto key = key_for(ref, record.id, its_answer, ring);
    if (!key) return std::unexpected(key.error());
    if (!rewrap_answer(**key, to, response)) {
      return std::unexpected(does_not_open(record.id, its_answer));
    }
  }
  verb.response = std::move(response);
  return std::nullopt;
}

std::optional<StoreResult> SealingKeys::plan_request(Record record, Reseal& verb,
                                                     const NamedKey& to,
                                                     const ScopeRing* ring) const {
  std::string& request = *record.stored_request;
  const bool is_clear = !is_sealed_request(request);
  const auto ref = key_of_request(request);
  if (!is_clear && ref == to.ref) return reply(Ended::wrong_state, record);
  if (const auto stays = rests(ref, ring)) return reply(*stays, record);
  if (record.state == State::in_progress) return reply(Ended::too_early, record);
  verb.seen = digest_of_stored(request);
  const SealedFor bound{record.scope, record.id, 0};
  if (is_clear) {
    if (const auto accepted = open_request(request, bound, ring); !accepted) {
      return std::unexpected(accepted.error());
    }
    seal_request(to, record.scope, std::span(&record.id, 1), request);
  } else {
    const auto key = key_for(ref, record.id, its_request, ring);
    if (!key) return std::unexpected(key.error());
    if (!rewrap_request(**key, to, request)) {
      return std::unexpected(does_not_open(record.id, its_request));
    }
  }
  verb.request = std::move(request);
  return std::nullopt;
}

}  // namespace idem
