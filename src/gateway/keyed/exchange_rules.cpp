#include "gateway/keyed/exchange_rules.hpp"

namespace idem::gateway {

ExchangeSettings exchange_rules(const Route& route, Millis lease) {
  return {.dispatch_timeout = route.upstream_timeout,
          .renew_interval = lease / 3,
          .replay_fields = route.replay_fields,
          .answers = route.answers,
          .store_body = route.store_body,
          .reconcile_in = route.reconcile_in,
          .no_record = {}};
}

}  // namespace idem::gateway
