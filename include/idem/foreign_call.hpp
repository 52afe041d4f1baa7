#pragma once

#include <idem/limits.hpp>
#include <idem/record.hpp>

#include <functional>
#include <string>
#include <variant>

/// @file
/// Calls to other services, which no transaction can undo, and what may follow a call that may have
/// been executed (protocol.md §16).
namespace idem::inline v0_1 {

/// The other side answered how the call ended: executed, or refused for good.
struct CallAnswered {
  std::string answer{};     ///< For the code that goes on, in any form.
  std::string reference{};  ///< The other side's.
};
/// The call provably had no effect: it never left this machine, or the answer says so.
struct CallNotDone {
  std::string why{};      ///< For the log.
  Millis retry_in{};      ///< As the other side asked (Retry-After); 0: not given.
  bool is_final = false;  ///< A repeat would fail as well.
};
/// The call may have been executed.
struct CallAmbiguous {
  std::string why{};        ///< For the log.
  std::string reference{};  ///< The other side's, if one was received.
  Millis retry_in{};        ///< As the other side asked; 0: not given.
};
/// How a call ended. An exception of `send` counts as CallAmbiguous.
using CallEnd = std::variant<CallAnswered, CallNotDone, CallAmbiguous>;

/// The other side has no trace of the call.
struct NothingThere {};
/// The other side did not answer the question.
struct CannotTell {
  std::string why{};  ///< For the log.
};
/// The result of a lookup.
using LookedUp = std::variant<CallAnswered, NothingThere, CannotTell>;

/// What a repeated call can rely on, declared by a person who knows the other side. Empty: a call
/// that may have been executed is never repeated.
template <class Call>
struct Repetition {
  /// For how long, from the first arrival, the other side recognises a repeated call by our key,
  /// does nothing, and answers as before; 0: it does not.
  Millis deduplicates{};
  /// Asks the other side whether the call was executed; must change nothing there. Null: there is
  /// no such question.
  std::function<LookedUp(const Call&)> lookup{};
  /// How long the other side may take to show an executed call: NothingThere counts only if it was
  /// seen that long after the last moment at which a call could still be under way.
  Millis lookup_grace = limits::evidence_grace_default;
};

/// The idempotency key for the other side: the same for every attempt, of 32 hexadecimal digits;
/// SHA-256 of record, phase and message, cut to 128 bits.
std::string derived_key(const RecordId& record, std::string_view phase,
                        std::string_view message = {});

}  // namespace idem::inline v0_1
