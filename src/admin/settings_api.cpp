#include "admin/settings_api.hpp"

#include "admin/deciding.hpp"
#include "admin/json_members.hpp"
#include "admin/order_reading.hpp"
#include "admin/replies.hpp"
#include "json/writer.hpp"

#include <idem/job_limits.hpp>

#include <functional>

namespace idem::admin {
namespace {

std::string page_of(const SettingsDifference& difference) {
  json::Writer out;
  out.begin_object();
  out.name("changes");
  out.begin_array();
  for (const SettingChange& one : difference.changes) {
    out.begin_object();
    out.member("name", one.name);
    out.member("before", one.before);
    out.member("after", one.after);
    out.flag("needs_restart", one.needs_restart);
    out.member("records", one.records);
    out.end_object();
  }
  out.end_array();
  write_text_or_null(out, "refused", difference.refused);
  out.end_object();
  return out.take() + "\n";
}

std::string names_in(const SettingsDifference& difference) {
  std::string names;
  for (const SettingChange& one : difference.changes) {
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return names.empty() ? "no setting differs" : names;
}

}  // namespace

Task<WireAnswer> SettingsApi::answer_to(http::ServerStream& client, const Caller& caller) {
  if (!parts_.reloading.difference) {
    co_return to_answer(
        {.code = ProblemCode::not_found, .detail = "This process has no reload: restart it."});
  }
  if (client.head().origin_form.find('?') != std::string_view::npos) {
    co_return invalid("This path has no parameters.");
  }
  if (client.head().method == "GET") {
    auto answer = co_await changes();
    co_return answer;
  }
  auto reading = read_order(parts_, client, caller);
  const auto order = co_await reading;
  if (!order) co_return order.error();
  auto answer = co_await reload(*order);
  co_return answer;
}

Task<WireAnswer> SettingsApi::changes() {
  std::function<SettingsDifference()> work = parts_.reloading.difference;
  auto reading = run_offloaded(parts_.loop, offload_, work);
  const auto& difference = co_await reading;
  co_return json_answer(page_of(difference));
}

Task<WireAnswer> SettingsApi::reload(const OrderBody& received) {
  const auto reason = parse_reason(received.body);
  if (!reason) co_return invalid(reason.error());
  if (parts_.draining.load()) {
    co_return state_refused("This process stops, and reloads nothing any more.");
  }
  Deciding deciding(parts_, received.signer, "settings.reload", "settings");
  auto beginning = deciding.begin(*reason, {});
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  const std::uint64_t before = parts_.reloading.last().number;
  parts_.reloading.ask();
  const auto until = MonotonicClock::now() + limits::reload_wait_max;
  ReloadEnd end = parts_.reloading.last();
  while (end.number == before && MonotonicClock::now() < until) {
    auto sleeping = parts_.loop.sleep(limits::reload_look_interval);
    co_await sleeping;
    end = parts_.reloading.last();
  }
  const bool has_ended = end.number != before;
  const std::string& refused = end.did.refused;
  std::string after = has_ended ? names_in(end.did) : doubt_text("the reload has not ended yet");
  if (has_ended && !refused.empty()) after = "refused: " + refused;
  auto ending = deciding.end(after);
  co_await ending;
  if (!has_ended) {
    co_return to_answer({.code = ProblemCode::store_unavailable,
                         .detail = "The reload has not ended within a minute: it may still be "
                                   "carried out. The log says how it ends."});
  }
  if (!refused.empty()) co_return state_refused("The reload was refused: " + refused);
  co_return json_answer(page_of(end.did));
}

}  // namespace idem::admin
