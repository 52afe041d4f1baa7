#include "admin/samples_api.hpp"

#include "admin/json_members.hpp"
#include "admin/query.hpp"
#include "admin/replies.hpp"
#include "json/writer.hpp"
#include "loop/store_link.hpp"

#include <idem/console_limits.hpp>

#include <algorithm>

namespace idem::admin {
namespace {

using json::Writer;
using metrics::Levels;
using metrics::Outcome;
using metrics::Sample;

/// One value of each sample, in their order: charts want columns.
template <class Of>
void column(Writer& out, std::string_view name, const std::vector<Sample>& samples, Of of) {
  out.name(name);
  out.begin_array();
  for (const Sample& sample : samples) write_value(out, of(sample));
  out.end_array();
}

void column(Writer& out, std::string_view name, const std::vector<Sample>& samples,
            std::uint64_t Sample::* of) {
  column(out, name, samples, [of](const Sample& sample) { return sample.*of; });
}
void column(Writer& out, std::string_view name, const std::vector<Sample>& samples,
            std::optional<double> Sample::* of) {
  column(out, name, samples, [of](const Sample& sample) { return sample.*of; });
}
void column(Writer& out, std::string_view name, const std::vector<Sample>& samples, Outcome of) {
  column(out, name, samples,
         [of](const Sample& sample) { return sample.reserves[static_cast<std::size_t>(of)]; });
}
template <class T>
void column(Writer& out, std::string_view name, const std::vector<Sample>& samples,
            T Levels::* of) {
  column(out, name, samples, [of](const Sample& sample) { return sample.levels.*of; });
}

std::string page(std::string_view span, const std::vector<Sample>& samples) {
  Writer out;
  out.begin_object();
  out.member("span", span);
  column(out, "end", samples, [](const Sample& sample) {
    return std::chrono::floor<std::chrono::seconds>(sample.end).time_since_epoch().count();
  });
  column(out, "milliseconds", samples,
         [](const Sample& sample) { return std::int64_t{sample.length.count()}; });
  column(out, "requests", samples, &Sample::requests);
  column(out, "first", samples, Outcome::created);
  column(out, "replays", samples, Outcome::replay);
  column(out, "races", samples, Outcome::in_progress);
  column(out, "misuse", samples, Outcome::key_misuse);
  column(out, "unknown_retries", samples, Outcome::unknown);
  column(out, "expired", samples, Outcome::expired);
  column(out, "quota_exceeded", samples, Outcome::quota_exceeded);
  column(out, "server_errors", samples, &Sample::server_errors);
  column(out, "store_errors", samples, &Sample::store_errors);
  column(out, "added_ms", samples, &Sample::added_ms);
  column(out, "reserve_p99_ms", samples, &Sample::reserve_p99_ms);
  column(out, "upstream_p50_ms", samples, &Sample::upstream_p50_ms);
  column(out, "store_up", samples, &Levels::store_answers);
  column(out, "unknown", samples, &Levels::unknown);
  column(out, "oldest_unknown_seconds", samples, &Levels::oldest_unknown_seconds);
  column(out, "waiting_messages", samples, &Levels::waiting_messages);
  column(out, "oldest_message_seconds", samples, &Levels::oldest_message_seconds);
  column(out, "dead_letters", samples, &Levels::dead_letters);
  column(out, "reap_seconds", samples, &Levels::reap_seconds);
  out.end_object();
  return out.take() + "\n";
}

}  // namespace

Task<void> SamplesApi::keep_sampling() {
  for (std::size_t turn = 0;; ++turn) {
    if (turn % limits::samples_per_count == 0) {
      auto counting = count();
      co_await counting;
    }
    auto sleeping = parts_.loop.sleep(limits::samples_interval);
    co_await sleeping;
    samples_.add(parts_.registry.totals(), levels(), std::chrono::system_clock::now());
  }
}

Task<void> SamplesApi::count() {
  StoreCall counting = Count{};
  auto asking = ask_store(parts_.loop, parts_.store, counting);
  const auto answer = co_await asking;
  if (!answer) {
    // Nothing is asked further of a store that does not answer.
    counted_ = {.store_answers = false};
    co_return;
  }
  auto counting_messages = count_messages_();
  const auto messages = co_await counting_messages;
  counted(std::get<Census>(*answer), messages);
}

void SamplesApi::counted(const Census& census,
                         const std::optional<std::vector<MessageCount>>& messages) {
  counted_ = {};
  counted_.unknown = census.by_state[static_cast<std::size_t>(State::unknown)];
  counted_.oldest_unknown_seconds =
      census.oldest_unknown ? seconds_of(census.now - *census.oldest_unknown) : 0;
  if (!messages) return;
  counted_.waiting_messages = 0;
  counted_.dead_letters = 0;
  counted_.oldest_message_seconds = 0;
  for (const MessageCount& one : *messages) {
    const bool is_dead = one.state == MessageState::dead;
    *(is_dead ? counted_.dead_letters : counted_.waiting_messages) += one.messages;
    if (is_dead) continue;
    counted_.oldest_message_seconds =
        std::max(*counted_.oldest_message_seconds, seconds_of(one.oldest_age));
  }
}

Levels SamplesApi::levels() const {
  Levels now = counted_;
  if (parts_.watches_store) now.store_answers = parts_.gauges().store_answers;
  // What it had when it answered says nothing about now.
  if (!now.store_answers) now = {.store_answers = false};
  if (const auto age = parts_.registry.reap_age()) {
    now.reap_seconds = std::chrono::duration_cast<std::chrono::seconds>(*age).count();
  }
  return now;
}

WireAnswer SamplesApi::answer_to(std::string_view query) const {
  static constexpr std::array<std::string_view, 1> known{"span"};
  const auto pairs = parse_query(query, known);
  if (!pairs) return invalid(pairs.error());
  std::string span = "hour";
  for (const auto& [name, value] : *pairs) span = value;
  if (pairs->size() > 1 || (span != "hour" && span != "day")) {
    return invalid("span is hour or day.");
  }
  const auto totals = parts_.registry.totals();
  const auto now = std::chrono::system_clock::now();
  return json_answer(page(span, span == "hour" ? samples_.hour(totals, levels(), now)
                                               : samples_.day(totals, levels(), now)));
}

}  // namespace idem::admin
