#pragma once

#include "store_conformance/harness.hpp"

/// Every shape that a record can have at one moment, for the table of transitions.
namespace idem::test {

/// The facts that a row's condition may use.
struct Facts {
  State state{};
  bool none = false;            ///< No record, or one that counts as none.
  bool same_request = true;     ///< The fingerprint matches.
  bool match = false;           ///< Fence and token, or the token alone.
  bool current_fence = false;   ///< Evidence speaks of the attempt in the record,
  bool may_be_current = false;  ///< or does not say of which,
  bool denies = false;          ///< and says that it was refused.
  bool after_lease = false;
  bool with_response = true;
  bool lease_holds = false;
  bool dispatched = false;
  bool may_rerun = false;  ///< Lease policy resume or rerun,
  bool reruns = false;     ///< the latter.
  bool request_stored = false;
  bool due = true;  ///< pending: may be claimed.
  bool past_expiry = false;
  bool past_tombstone = false;
  bool found_out = false;     ///< Evidence completed it.
  bool server_error = false;  ///< The stored status is a 5xx.
  bool same_token_runs = false;
};

inline const StoreTime now{Millis(1'800'000'000'000)};

struct Shape {
  std::optional<Record> record;
  Facts facts;
};

std::vector<Shape> shapes();

}  // namespace idem::test
