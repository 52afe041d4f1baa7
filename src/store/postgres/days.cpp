#include "store/postgres/days.hpp"

#include <idem/limits.hpp>

namespace idem::postgres {

// A gateway has one for each route at most; callers of the library may have more.
constexpr std::size_t retentions_max = 64;
// The expiry day of answers that complete today, and two more for a gateway that is busy at
// midnight.
constexpr int days_ahead = 3;

void Days::expect(Millis retention) {
  if (retentions_.size() >= retentions_max) return;
  if (retentions_.insert(retention).second) due_ = MonotonicTime::min();
}

Task<void> Days::keep(Connection& connection) {
  due_ = MonotonicClock::now() + limits::store_days_interval;
  const std::set<Millis> retentions = retentions_;
  for (const Millis retention : retentions) {
    for (int day = 0; day < days_ahead && connection.is_open(); ++day) {
      Params params;
      params.number(retention.count()).small(day);
      const QueryResult made = co_await connection.ask(
          "SELECT idem.make_day(idem.expiry_day($1, $2))", params, limits::store_reply_max);
      (void)made;
    }
  }
  if (!connection.is_open()) co_return;
  const Params none;
  const QueryResult dropped =
      co_await connection.ask("SELECT idem.drop_old_days()", none, limits::store_reply_max);
  (void)dropped;
  if (!connection.is_open()) co_return;
  Params most;
  most.small(limits::usage_rows_folded);
  const QueryResult folded =
      co_await connection.ask("SELECT idem.fold_usage($1)", most, limits::store_reply_max);
  (void)folded;
}

}  // namespace idem::postgres
