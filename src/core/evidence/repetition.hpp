#pragma once

#include <idem/record.hpp>

#include <optional>

/// What to do about a foreign call that may have been made already (protocol.md §16, §19). Pure.
namespace idem {

/// What is known before the next try.
struct CallHistory {
  /// For how long no earlier try can have been under way; none: no earlier try can have arrived.
  std::optional<Millis> quiet_for{};
  /// How long ago the first try can have arrived, at most.
  Millis first_ago{};
};
/// The declared behaviour of the other side.
struct Declared {
  Millis deduplicates{};
  bool has_lookup = false;
  Millis lookup_grace{};
  Millis timeout{};  ///< Of one call.
};

enum class NextStep : std::uint8_t {
  send,     ///< It was not made, or the other side recognises the repetition.
  look_up,  ///< The result of a lookup is reliable now.
  wait,     ///< A lookup may still miss the call.
  give_up,  ///< The outcome stays unknown.
};
struct Next {
  NextStep step = NextStep::give_up;
  Millis wait{};  ///< Of `wait`.
};

Next next_step(const CallHistory& history, const Declared& declared) noexcept;

}  // namespace idem
