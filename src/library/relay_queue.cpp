#include "library/relay_queue.hpp"
#include <idem/worker_limits.hpp>

#include "core/bytes/hex.hpp"
#include "library/own_values.hpp"
#include "store/internal_sql.hpp"

#include <algorithm>

namespace idem::library {
namespace {

std::string_view name_of(Noted how) {
  switch (how) {
    case Noted::delivered:
      return "delivered";
    case Noted::put_off:
      return "put_off";
    case Noted::unseen:
      return "unseen";
    case Noted::given_back:
      return "given_back";
    case Noted::dead:
      return "dead";
  }
  return {};
}

/// A text of another service, in a form that every database stores.
std::string printable(std::string_view text) {
  std::string kept(text.substr(0, limits::delivery_error_bytes_max));
  std::ranges::replace_if(kept, [](char c) { return c < ' ' || c > '~'; }, '?');
  return kept;
}

}  // namespace

std::expected<std::vector<ClaimedMessage>, std::string> RelayQueue::claim(std::size_t most,
                                                                          Millis lease,
                                                                          Millis repeats,
                                                                          bool is_noted) {
  const auto asked_at = MonotonicClock::now();
  const auto rows =
      InternalSql::run(transactions_, InternalStatement::claim_messages,
                       {destination_, static_cast<std::int64_t>(most), std::int64_t{lease.count()},
                        std::int64_t{repeats.count()}, std::int64_t{is_noted ? 1 : 0}});
  if (!rows) return std::unexpected(rows.error());
  const auto answered_at = MonotonicClock::now();
  std::vector<ClaimedMessage> claimed;
  for (const SqlRow& row : *rows) {
    ClaimedMessage& one = claimed.emplace_back();
    one.seq = number_of(row.at(0));
    one.id = text_of(row.at(1));
    one.operation = parse_handle(text_of(row.at(2))).value_or(RecordId{});
    one.message = {.destination = destination_,
                   .type = text_of(row.at(5)),
                   .payload = text_of(row.at(6)),
                   .aggregate_type = text_of(row.at(3)),
                   .aggregate_id = text_of(row.at(4)),
                   .content_type = text_of(row.at(7))};
    one.created_at = moment_of(row.at(8));
    one.attempt = static_cast<int>(number_of(row.at(9)));
    one.claim = number_of(row.at(10));
    one.repeat_until = asked_at + Millis(number_of(row.at(12)));
    if (number_of(row.at(11)) != 0) {
      one.no_call_in_flight_since =
          answered_at - Millis(is_null(row.at(13)) ? 0 : number_of(row.at(13)));
    }
  }
  std::ranges::sort(claimed, {}, &ClaimedMessage::seq);
  return claimed;
}

std::expected<bool, std::string> RelayQueue::note_sending(const ClaimedMessage& claimed) {
  return has_row(InternalSql::run(transactions_, InternalStatement::note_sending,
                                  {claimed.seq, claimed.claim}));
}

std::expected<bool, std::string> RelayQueue::note(const ClaimedMessage& claimed, const Note& note) {
  return has_row(InternalSql::run(
      transactions_, InternalStatement::note_delivery,
      {claimed.seq, claimed.claim, std::string(name_of(note.how)), printable(note.reference),
       printable(note.why), std::int64_t{note.delay.count()},
       std::int64_t{note.may_have_arrived ? 1 : 0}}));
}

std::expected<std::size_t, std::string> RelayQueue::reap(std::size_t most, Millis retention) {
  const auto rows =
      InternalSql::run(transactions_, InternalStatement::reap_messages,
                       {static_cast<std::int64_t>(most), std::int64_t{retention.count()}});
  if (!rows) return std::unexpected(rows.error());
  return rows->size();
}

}  // namespace idem::library
