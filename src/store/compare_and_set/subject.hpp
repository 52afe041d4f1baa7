#pragma once

#include "store/verb_traits.hpp"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace idem::compare_and_set {

/// The record of a call, and the parts of it that its step needs.
struct Subject {
  RecordId id{};
  std::vector<RecordId> also{};  ///< Other names that the record may have.
  /// The generation by which the caller names records. None: it does not matter.
  std::optional<std::uint64_t> generation{};
  bool needs_answer = false;
  bool needs_request = false;
  bool needs_evidence = false;
  bool is_new_work = false;  ///< Most often there is no record.
  /// For a reserve with a quota.
  std::string scope{};
  std::optional<Quota> quota{};
};

inline Subject subject_of(const Reserve& verb) {
  Subject subject{.id = verb.id,
                  .generation = verb.generation,
                  .needs_answer = true,
                  .is_new_work = true,
                  .quota = verb.quota};
  for (const OtherName& other : verb.also) subject.also.push_back(other.id);
  if (verb.quota) subject.scope = verb.scope;
  return subject;
}

/// None: the call is about no single record.
inline std::optional<Subject> subject_of(const StoreCall& call) {
  return std::visit(
      [](const auto& verb) -> std::optional<Subject> {
        using Verb = std::decay_t<decltype(verb)>;
        if constexpr (std::is_same_v<Verb, Reserve>) {
          return subject_of(verb);
        } else if constexpr (std::is_same_v<Verb, Accept>) {
          return subject_of(verb.as);
        } else if constexpr (std::is_same_v<Verb, Resolve>) {
          return Subject{.id = verb.id, .needs_answer = true};
        } else if constexpr (std::is_same_v<Verb, CacheBust>) {
          return Subject{.id = verb.id, .needs_answer = true, .needs_evidence = true};
        } else if constexpr (std::is_same_v<Verb, PutRecord>) {
          return Subject{.id = verb.id,
                         .generation = verb.generation,
                         .needs_answer = true,
                         .needs_evidence = true};
        } else if constexpr (std::is_same_v<Verb, Reseal>) {
          return Subject{.id = verb.id, .needs_answer = true, .needs_request = true};
        } else if constexpr (std::is_same_v<Verb, Reschedule> ||
                             std::is_same_v<typename Verb::Reply, OwnerReply>) {
          return Subject{.id = verb.id};
        } else {
          return std::nullopt;
        }
      },
      call);
}

/// A repeat does more, or its reply differs.
inline bool is_once(const StoreCall& call) {
  return !traits_of(call).is_repeatable && !traits_of(call).is_lifecycle;
}

/// A reading wrote nothing: that its reply is lost leaves no doubt about the call.
inline StoreError of_reading(StoreError error) {
  if (error.code == StoreError::Code::in_doubt) error.code = StoreError::Code::unavailable;
  return error;
}

}  // namespace idem::compare_and_set
