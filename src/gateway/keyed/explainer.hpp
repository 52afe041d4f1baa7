#pragma once

#include "core/exchange/explanation.hpp"
#include "gateway/auth/scope.hpp"
#include "loop/loop.hpp"

#include <expected>

namespace idem::gateway {

using Explained = std::expected<Explanation, NotExplained>;

/// Says what would become of a request, by the functions that serve requests: the same route,
/// scope, key, fingerprint and names, the steps of the stores over copies of the records, and the
/// exchange's answer. Only reads records. It does not ask the authoriser or the upstream, counts
/// nothing, and uses neither the shares of scopes nor the replay memory. One loop's thread.
class Explainer {
 public:
  /// Both must outlive it.
  Explainer(Loop& loop, Store& store)
      : loop_(loop), store_(store), scopes_(store.identity().scope_secret) {}

  /// `request` must outlive the task.
  Task<Explained> explain(SharedSettings settings, const RequestInQuestion& request);

 private:
  Loop& loop_;
  Store& store_;
  ScopeReader scopes_;  ///< Its own: no request knows of the tokens that it has verified.
};

}  // namespace idem::gateway
