#pragma once

#include <idem/record.hpp>

#include <optional>

/// What to do about a call that may have been made (protocol.md §16, §19). Pure.
namespace idem {

/// What is known when somebody is about to make it.
struct CallHistory {
  /// Since when no earlier try can be under way any more, in time that has passed; none: nothing
  /// may have arrived so far.
  std::optional<Millis> quiet_for{};
  /// How long ago the first of them can have arrived, at most.
  Millis first_ago{};
};
/// What the other side was declared to do.
struct Declared {
  Millis deduplicates{};
  bool has_lookup = false;
  Millis lookup_grace{};
  Millis timeout{};  ///< Of one call.
};

enum class NextStep : std::uint8_t {
  send,     ///< It was not made, or will be taken for what it is.
  look_up,  ///< Whatever is seen now counts.
  wait,     ///< What would not be seen now might be there all the same.
  give_up,  ///< Nobody knows.
};
struct Next {
  NextStep step = NextStep::give_up;
  Millis wait{};  ///< Of `wait`.
};

Next next_step(const CallHistory& history, const Declared& declared) noexcept;

}  // namespace idem
