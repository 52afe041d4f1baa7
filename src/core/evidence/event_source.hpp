#pragma once

#include "core/evidence/event_signature.hpp"
#include "core/evidence/provider_rules.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace idem {

/// A provider that tells by itself what became of an attempt (protocol.md §19).
struct EventSource {
  std::string name{};  ///< The provider's.
  EventSignature signature{};
  // JSON Pointers into the event.
  std::string id{};  ///< Empty: the field webhook-id.
  // What names the record; at least one of them.
  std::string operation{};    ///< The handle that the upstream was sent.
  std::string key{};          ///< The client's key.
  std::string derived_key{};  ///< Made of the record and `phase`.
  std::string reference{};    ///< The upstream's.
  std::string phase{};        ///< Of `derived_key`.
  std::string fence{};        ///< Which attempt; empty: the one that is current.
  ResponseMatchers says{};    ///< Without statuses.
  RebuildRule rebuild{};
};

/// What an event says, once its signature is known to be good.
struct EventSays {
  std::string id{};
  std::optional<RecordId> operation{};
  std::string key{};
  std::string derived_key{};
  std::string reference{};
  std::optional<Fence> fence{};
  Finding finding = Finding::later;
  std::optional<StoredResponse> response{};  ///< Of found and failed, where one can be made.
};

/// The error is a sentence: it is no JSON, or has no id.
std::expected<EventSays, std::string> read_event(const EventSource& source,
                                                 std::string_view webhook_id,
                                                 std::string_view body);

/// The source that lines of the evidence log are written under: "event:NAME".
std::string log_name_of(const EventSource& source);

/// What a line of the log says of the event. `keeps`: with the answer, for an attempt that is still
/// under way; it is applied should that attempt end without one.
std::string evidence_of(const EventSays& event, std::string_view body, bool keeps);

/// True when the line is about this event.
bool is_about(const EvidenceEntry& line, std::string_view source, const std::string& event_id);

/// Word about the attempt with this fence that stands in the log and was not applied: it came while
/// the attempt was under way, or no answer could be made of it.
struct Kept {
  const EvidenceEntry* line = nullptr;
  Finding said = Finding::found;             ///< Found or failed.
  std::optional<StoredResponse> response{};  ///< None: only people know what to tell.
  bool is_contradicted = false;              ///< Another one said otherwise.
};
/// Of several the first that has an answer, and any by which it was done before one by which it
/// failed.
std::optional<Kept> kept_answer(const std::vector<EvidenceEntry>& log, Fence fence);

/// What the log has as word, not applied, about the attempt with this fence, or about one that it
/// does not tell: that it was done, whatever else is said, or that it failed.
std::optional<Finding> word_of(const std::vector<EvidenceEntry>& log, Fence fence);

}  // namespace idem
