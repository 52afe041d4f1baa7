#include "gateway/keyed/shadow_record.hpp"

#include <algorithm>

namespace idem::gateway {
namespace {

// No stored answer of an enforced route has this field: its name is reserved (protocol.md §14).
constexpr std::string_view mark_field = "Idem-Shadow";
constexpr std::string_view not_kept_mark = "not_kept";
constexpr std::string_view unknown_mark = "unknown";
// What a first caller would get without an answer of the upstream.
constexpr int no_answer_status = 502;

bool is_marked(const StoredResponse& response, std::string_view mark) {
  return std::ranges::any_of(response.headers, [&](const Field& field) {
    return field.name == mark_field && field.value == mark;
  });
}

StoredResponse marked(int status, std::string_view mark) {
  StoredResponse response{.status = status == 0 ? no_answer_status : status,
                          .headers = {},
                          .body = {},
                          .body_stored = false};
  if (!mark.empty()) response.headers.push_back({std::string(mark_field), std::string(mark)});
  return response;
}

}  // namespace

ShadowEnding ending_of(const AnswerFacts& facts, const AnswerPolicy& policy,
                       bool is_kept) noexcept {
  switch (disposition(facts, policy)) {
    case Disposition::store:
      return is_kept ? ShadowEnding::stored : ShadowEnding::not_kept;
    case Disposition::release_proven:
      return ShadowEnding::released_proven;
    case Disposition::release_declared:
      return ShadowEnding::released_declared;
    case Disposition::unknown:
      break;
  }
  return ShadowEnding::unknown;
}

StoreCall ending_call(const RecordId& id, const Attempt& attempt, ShadowEnding ending, int status) {
  const std::string code = status == 0 ? "upstream_unreachable" : "http_" + std::to_string(status);
  switch (ending) {
    case ShadowEnding::stored:
      return Complete{id, attempt, marked(status, {}), {}};
    case ShadowEnding::not_kept:
      return Complete{id, attempt, marked(status, not_kept_mark), {}};
    case ShadowEnding::released_proven:
      return Release{id, attempt, ReleaseBasis::proven, code, Millis{}};
    case ShadowEnding::released_declared:
      return Release{id, attempt, ReleaseBasis::declared, code, Millis{}};
    case ShadowEnding::unknown:
      break;
  }
  return Complete{id, attempt, marked(status, unknown_mark), {}};
}

ReserveOutcome as_enforced(ReserveOutcome outcome) {
  auto* const replay = std::get_if<Replay>(&outcome);
  if (replay == nullptr) return outcome;
  if (is_marked(replay->response, unknown_mark)) {
    return Unknown{replay->completed_at, std::nullopt, replay->id};
  }
  replay->response.body_stored = !is_marked(replay->response, not_kept_mark);
  std::erase_if(replay->response.headers,
                [](const Field& field) { return field.name == mark_field; });
  return outcome;
}

}  // namespace idem::gateway
