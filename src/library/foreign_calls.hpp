#pragma once

#include "core/evidence/repetition.hpp"
#include "library/misuse.hpp"

#include <idem/crash_point.hpp>
#include <idem/foreign_call.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <functional>
#include <string_view>

/// What phases and relays do alike around a foreign call (protocol.md §16, §18).
namespace idem::library {

/// What a lease must cover beyond a call's timeout.
inline Millis call_margin(Millis lease) noexcept {
  return std::min(lease / 10, Millis(limits::call_margin_max));
}

/// True: each call is noted before it is made, so that a crash leaves only that one in doubt. This
/// costs a commit, so only calls do it that can be neither repeated nor looked up.
template <class Call>
bool needs_notes(const Repetition<Call>& repetition) noexcept {
  return repetition.deduplicates == Millis{} && !repetition.lookup;
}

template <class Call>
Declared declared_by(const Repetition<Call>& repetition, Millis timeout) noexcept {
  return {.deduplicates = repetition.deduplicates,
          .has_lookup = repetition.lookup != nullptr,
          .lookup_grace = repetition.lookup_grace,
          .timeout = timeout};
}

/// The lookup's result; an exception of it counts as CannotTell.
template <class Call>
LookedUp look_up(const Repetition<Call>& repetition, const Call& call) {
  try {
    return repetition.lookup(call);
  } catch (...) {
    return CannotTell{thrown_by("the lookup")};
  }
}

/// Makes the call; an exception of it counts as CallAmbiguous. `what` names the call in its text.
template <class Call>
CallEnd send_once(const std::function<CallEnd(const Call&)>& send, const Call& call,
                  std::string_view what) {
  // Until the call has ended, it may have been executed.
  CallEnd end = CallAmbiguous{"the call threw", {}, {}};
  crash_point(CrashPoint::dispatch_before_first_byte);
  try {
    end = send(call);
  } catch (...) {
    end = CallAmbiguous{thrown_by(what), {}, {}};
  }
  crash_point(CrashPoint::response_head);
  return end;
}

}  // namespace idem::library
