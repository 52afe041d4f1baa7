#pragma once

#include <idem/limits.hpp>
#include <idem/record.hpp>

#include <functional>
#include <string>
#include <variant>

/// @file
/// Calls to the outside world, which no transaction can take back, and what may be done where
/// nobody knows whether one arrived (protocol.md §16).
namespace idem::inline v0_1 {

/// It was answered, and the answer says how it ended: done, or refused for good.
struct CallAnswered {
  std::string answer{};     ///< For whoever goes on with it, as it sees fit.
  std::string reference{};  ///< What the other side calls it.
};
/// Proven: it did nothing there. It never left this machine, or the answer says so.
struct CallNotDone {
  std::string why{};      ///< For the log.
  Millis retry_in{};      ///< As the other side asked (Retry-After); 0: it did not.
  bool is_final = false;  ///< It never will: no use in asking again.
};
/// It may have been done there.
struct CallAmbiguous {
  std::string why{};        ///< For the log.
  std::string reference{};  ///< What the other side calls it, where that was heard.
  Millis retry_in{};        ///< As the other side asked; 0: it did not.
};
/// Anything that `send` throws is ambiguous, too.
using CallEnd = std::variant<CallAnswered, CallNotDone, CallAmbiguous>;

/// The other side has never seen it.
struct NothingThere {};
/// It was asked, and did not say.
struct CannotTell {
  std::string why{};  ///< For the log.
};
/// What a lookup says.
using LookedUp = std::variant<CallAnswered, NothingThere, CannotTell>;

/// What a repeated call can rely on. Declared by who knows the other side; without any of it a call
/// that may have been done is never made again.
template <class Call>
struct Repetition {
  /// For how long, from its first arrival, the other side takes a call with our key again for the
  /// one that it knows, does nothing, and answers as before; 0: it does not.
  Millis deduplicates{};
  /// Asks the other side whether it was done; must change nothing there. Null: it cannot be asked.
  std::function<LookedUp(const Call&)> lookup{};
  /// How long the other side may take to show what it did: NothingThere counts only when it was
  /// seen so long after the last moment at which a call could still be under way.
  Millis lookup_grace = limits::evidence_grace_default;
};

/// The idempotency key for the other side: the same for every attempt, of 32 hexadecimal digits;
/// SHA-256 of record, phase and message, cut to 128 bits.
std::string derived_key(const RecordId& record, std::string_view phase,
                        std::string_view message = {});

}  // namespace idem::inline v0_1
