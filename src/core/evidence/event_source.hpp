#pragma once

#include "core/evidence/event_signature.hpp"
#include "core/evidence/provider_rules.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace idem {

/// A provider that sends events about the outcome of an attempt (protocol.md §19).
struct EventSource {
  std::string name{};  ///< The provider's.
  EventSignature signature{};
  // JSON Pointers into the event.
  std::string id{};  ///< Empty: the field webhook-id.
  // At least one of these names the record.
  std::string operation{};    ///< The handle that the gateway sent to the upstream.
  std::string key{};          ///< The client's key.
  std::string derived_key{};  ///< Made of the record and `phase`.
  std::string reference{};    ///< The upstream's.
  std::string phase{};        ///< Of `derived_key`.
  std::string fence{};        ///< The attempt's; empty: the current attempt.
  ResponseMatchers says{};    ///< Without statuses.
  RebuildRule rebuild{};
};

/// The content of an event whose signature was checked.
struct ProviderEvent {
  std::string id{};
  std::optional<RecordId> operation{};
  std::string key{};
  std::string derived_key{};
  std::string reference{};
  std::optional<Fence> fence{};  ///< As it is written: one that says 0 names no attempt.
  Finding finding = Finding::later;
  std::optional<StoredResponse> response{};  ///< Of found and failed, if one can be made.
};

/// The error is a sentence: it is no JSON, or has no id.
std::expected<ProviderEvent, std::string> read_event(const EventSource& source,
                                                     std::string_view webhook_id,
                                                     std::string_view body);

/// The source that lines of the evidence log are written under: "event:NAME".
std::string log_name_of(const EventSource& source);

/// The text of the event's entry in the evidence log. `keeps`: with the answer, for an attempt that
/// still runs; it is applied if that attempt ends without one.
std::string evidence_of(const ProviderEvent& event, std::string_view body, bool keeps);

/// True if the entry is about this event.
bool is_about(const EvidenceEntry& line, std::string_view source, const std::string& event_id);

/// Evidence about the attempt with this fence that is in the log and was not applied: it came while
/// the attempt ran, or no answer could be made of it.
struct KeptEvent {
  const EvidenceEntry* line = nullptr;
  Finding said = Finding::found;             ///< Found or failed.
  std::optional<StoredResponse> response{};  ///< None: an operator must supply the answer.
  bool is_contradicted = false;              ///< Another entry says the opposite.
};
/// Of several the first that has an answer; any with `found` before one with `failed`.
std::optional<KeptEvent> kept_answer(const std::vector<EvidenceEntry>& log,
                                     std::optional<Fence> fence);

/// What the evidence that was not applied reports about the attempt with this fence, or about an
/// attempt without one: found if any entry says so, else failed if any does.
std::optional<Finding> reported_finding(const std::vector<EvidenceEntry>& log,
                                        std::optional<Fence> fence);

}  // namespace idem
