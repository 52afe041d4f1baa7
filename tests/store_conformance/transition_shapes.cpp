#include "store_conformance/transition_shapes.hpp"

namespace idem::test {
namespace {

Record base_record(State state) {
  Record record;
  record.id = key(1);
  record.fingerprint = body(1);
  record.state = state;
  record.attempt = Attempt{7, token(1)};
  record.retention = retention;
  record.tombstone = tombstone;
  record.dispatched = true;
  record.recovery_point = "phase-1";
  record.created_at = now - 5s;
  record.changed_at = now - 5s;
  return record;
}

void add_waiting(std::vector<Shape>& shapes) {
  for (const bool past : {false, true}) {
    const StoreTime expires = past ? now : now + 1ms;
    Record failed = base_record(State::failed_retryable);
    failed.expires_at = expires;
    shapes.push_back({failed, {.state = failed.state, .none = past, .past_expiry = past}});
    for (const bool due : {false, true}) {
      for (const bool ran : {false, true}) {
        Record pending = base_record(State::pending);
        if (!ran) pending.attempt.reset();
        pending.stored_request = "please";
        pending.expires_at = expires;
        pending.locked_until = due ? now : now + 1ms;
        shapes.push_back(
            {pending,
             {.state = pending.state, .request_stored = true, .due = due, .past_expiry = past}});
      }
    }
  }
}

void add_running(std::vector<Shape>& shapes) {
  for (const State state : {State::in_progress, State::unknown}) {
    for (const bool holds : {true, false}) {
      for (const bool sent : {true, false}) {
        for (const auto policy : {LeasePolicy::unknown, LeasePolicy::resume, LeasePolicy::rerun}) {
          for (const int request : {0, 1, 2}) {  // None, stored, stored and past its expiry.
            Record record = base_record(state);
            record.locked_until = holds ? now + 1ms : now;
            // An observation now is after the attempt's last instant, or is not.
            if (state == State::unknown) record.locked_until -= 1ms;
            record.dispatched = sent;
            record.lease_policy = policy;
            if (request != 0) record.stored_request = "please";
            if (request != 0) record.expires_at = request == 2 ? now : now + 1ms;
            shapes.push_back({record,
                              {.state = state,
                               .lease_holds = holds,
                               .dispatched = sent,
                               .may_rerun = policy != LeasePolicy::unknown,
                               .reruns = policy == LeasePolicy::rerun,
                               .request_stored = request != 0,
                               .past_expiry = request == 2}});
          }
        }
      }
    }
  }
}

void add_ended(std::vector<Shape>& shapes) {
  for (const int age : {0, 1, 2}) {  // Fresh, past its expiry, past its tombstone.
    for (const State state : {State::completed, State::expired}) {
      for (const int status : {201, 503}) {
        Record record = base_record(state);
        record.completed_at = now - 5s;
        record.expires_at = age == 0 ? now + 1ms : now;
        record.tombstone_until = age == 2 ? now : now + 1ms;
        if (state == State::completed) record.response = answer(status);
        shapes.push_back({record,
                          {.state = state,
                           .none = age == 2,
                           .past_expiry = age != 0,
                           .past_tombstone = age == 2,
                           .server_error = status == 503}});
      }
    }
  }
}

}  // namespace

std::vector<Shape> shapes() {
  std::vector<Shape> all{{std::nullopt, {.none = true}}};
  add_waiting(all);
  add_running(all);
  add_ended(all);
  return all;
}

}  // namespace idem::test
