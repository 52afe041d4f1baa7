#include "store/redis/identity_steps.hpp"

#include "core/naming/adopt_routes.hpp"
#include "core/naming/copied_identity.hpp"
#include "core/record/which_store.hpp"
#include "store/redis/scripts.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem::redis {
namespace {

using Code = StoreError::Code;

std::unexpected<NoReply> no(Code code, std::string why) {
  return std::unexpected(NoReply{code, std::move(why)});
}

/// "op:pay" → "pay" with `start` "op:".
std::optional<std::string_view> behind(std::string_view text, std::string_view start) {
  if (!text.starts_with(start)) return std::nullopt;
  return text.substr(start.size());
}

void add_holdings(const Reply& counters, Holdings& to) {
  for (std::size_t i = 0; i + 1 < counters.items.size(); i += 2) {
    const std::string& name = counters.items[i].text;
    if (const auto operation = behind(name, "op:")) to.operations.emplace(*operation);
    if (const auto generation = behind(name, "gen:")) {
      to.census.empty = false;
      to.census.generations.insert(std::strtoull(std::string(*generation).c_str(), nullptr, 10));
    }
  }
}

/// The longest wait for another node's change: until it counts as abandoned, and a little more.
constexpr auto change_patience = limits::redis_change_abandoned + std::chrono::seconds(5);

}  // namespace

Task<std::expected<std::optional<IdentityValue>, NoReply>> IdentitySteps::read() {
  const auto& place = names_.identity();
  Task<QuestionResult> asking = client_.ask({place.slot, command({"GET", place.tag})});
  QuestionResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(std::move(reply.error()));
  if (reply->kind == Reply::Kind::nil) co_return std::nullopt;
  auto value = parse_identity_value(reply->text);
  if (!value) co_return no(Code::refused, std::string(value.error()));
  co_return std::optional(std::move(*value));
}

void IdentitySteps::remember(const StoreIdentity& identity) {
  texts_[identity.recorded.generation] = generation_text(identity);
}

std::string IdentitySteps::text_of(std::uint64_t generation) const {
  const auto found = texts_.find(generation);
  return found != texts_.end() ? found->second : std::to_string(generation) + ":unknown here";
}

Task<std::expected<StoreTime, NoReply>> IdentitySteps::now() {
  Task<Connection*> finding = client_.servers().of(names_.identity().slot);
  Connection* const connection = co_await std::move(finding);
  if (connection == nullptr) co_return no(Code::unavailable, client_.servers().why());
  if (!connection->clock.is_known()) {
    co_return no(Code::unavailable, "the server does not report its time");
  }
  co_return connection->clock.at(MonotonicClock::now());
}

bool IdentitySteps::is_abandoned(const StoreIdentity& identity, StoreTime now) const noexcept {
  // A change from the future began under a clock that has gone back since.
  return now - identity.changing_since >= limits::redis_change_abandoned ||
         identity.changing_since > now + limits::redis_clock_slack;
}

Task<std::expected<bool, NoReply>> IdentitySteps::swap(std::string_view before,
                                                       const IdentityValue& after) {
  const auto& place = names_.identity();
  Question question{place.slot, {}};
  scripts()
      .swap.call(question.command, place.tag, 2)
      .add(before)
      .add(to_identity_value(after.version, after.identity));
  Task<QuestionResult> asking = client_.ask(std::move(question));
  const QuestionResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(reply.error());
  co_return reply->at(0).text == "done";
}

Task<std::expected<IdentityValue, NoReply>> IdentitySteps::begin_change() {
  const MonotonicTime until = MonotonicClock::now() + change_patience;
  while (MonotonicClock::now() < until) {
    auto reading = read();
    auto found = co_await std::move(reading);
    if (!found) co_return std::unexpected(std::move(found.error()));
    auto asking_time = now();
    const auto time = co_await std::move(asking_time);
    if (!time) co_return std::unexpected(time.error());
    const bool is_busy =
        *found && (*found)->identity.is_changing && !is_abandoned((*found)->identity, *time);
    if (!is_busy) {
      IdentityValue next{versions_.next(), *found ? (*found)->identity : StoreIdentity{}};
      if (!*found) random_bytes(next.identity.store_id);
      ++next.identity.change;
      next.identity.is_changing = true;
      next.identity.changing_since = *time;
      const std::string before(*found ? bytes_of((*found)->version) : std::string_view());
      auto swapping = swap(before, next);
      const auto swapped = co_await std::move(swapping);
      if (!swapped) co_return std::unexpected(swapped.error());
      if (*swapped) co_return next;
    }
    Task<void> pausing = client_.pause();
    co_await std::move(pausing);
  }
  co_return no(Code::unavailable, "another node is changing the store's identity");
}

Task<std::expected<Holdings, NoReply>> IdentitySteps::close_buckets(const StoreIdentity& identity) {
  std::vector<Question> questions;
  for (std::size_t i = 0; i < bucket_count; ++i) {
    Question question{names_.bucket(i).slot, {}};
    scripts()
        .close.call(question.command, names_.bucket(i).tag, 3)
        .add(static_cast<std::int64_t>(identity.change))
        .add(identity.is_complete ? "0" : "1")
        .add(to_hex(identity.store_id));
    questions.push_back(std::move(question));
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  Holdings holdings;
  for (const QuestionResult& reply : all) {
    if (!reply) co_return std::unexpected(reply.error());
    const std::string& what = reply->at(0).text;
    if (what == "lost") {
      co_return no(Code::refused,
                   "a part of it has lost its records: their retries would run again; empty it "
                   "as a whole, or bring the records back");
    }
    if (what == "foreign") {
      co_return no(Code::refused,
                   "records of another store lie under the same prefix, or those of this one whose "
                   "identity was lost: their retries would run again; empty it as a whole, bring "
                   "the identity back, or choose another prefix");
    }
    if (what != "done") {
      co_return no(Code::unavailable, "another node is changing the store's identity");
    }
    add_holdings(reply->at(2), holdings);
  }
  co_return holdings;
}

Question IdentitySteps::open_question(std::size_t bucket, const StoreIdentity& identity) const {
  const auto& place = names_.bucket(bucket);
  Question question{place.slot, {}};
  scripts()
      .open.call(question.command, place.tag, 2)
      .add(static_cast<std::int64_t>(identity.change))
      .add(generation_text(identity));
  return question;
}

Task<std::expected<void, NoReply>> IdentitySteps::open_buckets(const StoreIdentity& identity) {
  std::vector<Question> questions;
  for (std::size_t i = 0; i < bucket_count; ++i) questions.push_back(open_question(i, identity));
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  for (const QuestionResult& reply : all) {
    // If a bucket was overtaken, the later change opens it.
    if (!reply) co_return std::unexpected(reply.error());
  }
  co_return std::expected<void, NoReply>();
}

Task<std::expected<void, NoReply>> IdentitySteps::end_change(Version begun,
                                                             const StoreIdentity& before,
                                                             const StoreIdentity& identity) {
  IdentityValue last{versions_.next(), identity};
  last.identity.is_changing = false;
  const bool is_new = !last.identity.is_complete ||
                      identity.recorded.generation != before.recorded.generation ||
                      !before.is_complete;
  if (is_new) random_bytes(last.identity.generation_mark);
  const std::string begun_version(bytes_of(begun));
  auto swapping = swap(begun_version, last);
  const auto swapped = co_await std::move(swapping);
  if (!swapped) co_return std::unexpected(swapped.error());
  if (!*swapped) {
    co_return no(Code::unavailable, "another node took over the change of the store's identity");
  }
  remember(last.identity);
  auto opening = open_buckets(last.identity);
  co_return co_await std::move(opening);
}

Task<std::expected<bool, NoReply>> IdentitySteps::change_once(const Decide& decide) {
  auto beginning = begin_change();
  const auto begun = co_await std::move(beginning);
  if (!begun) co_return std::unexpected(begun.error());
  const StoreIdentity before = begun->identity;
  StoreIdentity next = before;
  auto closing = close_buckets(before);
  const auto holdings = co_await std::move(closing);
  const bool is_decided = holdings && decide(next, *holdings);
  if (!is_decided) next = before;
  // The buckets are opened again after every decision.
  const bool is_first_and_failed = !holdings && !before.is_complete;
  if (is_first_and_failed) co_return std::unexpected(holdings.error());
  auto ending = end_change(begun->version, before, next);
  const auto ended = co_await std::move(ending);
  if (!holdings) co_return std::unexpected(holdings.error());
  if (!ended) co_return std::unexpected(ended.error());
  co_return is_decided;
}

Task<std::expected<void, NoReply>> IdentitySteps::change(Decide decide) {
  auto changing = change_once(decide);
  auto changed = co_await std::move(changing);
  if (changed && !*changed) {
    // Records that are due but not reaped yet may forbid the change. Meanwhile reserves go on.
    Task<void> reaping = reap_();
    co_await std::move(reaping);
    auto changing_again = change_once(decide);
    changed = co_await std::move(changing_again);
  }
  if (!changed) co_return std::unexpected(std::move(changed.error()));
  co_return std::expected<void, NoReply>();
}

Task<std::expected<IdentitySteps::Settled, std::string>> IdentitySteps::settle(
    IdentitySettings settings, WhichStore which) {
  auto reading = read();
  const auto found = co_await std::move(reading);
  if (!found) co_return std::unexpected(found.error().why);
  std::optional<StoreId> there;
  if (*found && (*found)->identity.is_complete) there = (*found)->identity.store_id;
  auto refusal = why_not(which, there);
  if (refusal) co_return std::unexpected(std::move(*refusal));
  if (!*found) {
    std::optional<RecordedIdentity> first;
    const auto possible =
        settle_identity(first, settings, [] { return GenerationCensus{}; }, which);
    if (!possible) co_return std::unexpected(possible.error());
  }
  Settled settled{.identity = {}, .is_new = !there};
  if (which.look && there) {
    std::optional<RecordedIdentity> recorded = (*found)->identity.recorded;
    const auto census = [&] { return present_generation(*recorded); };
    auto identity = settle_identity(recorded, settings, census, which);
    if (!identity) co_return std::unexpected(std::move(identity.error()));
    remember((*found)->identity);
    co_return Settled{std::move(*identity), *there, false};
  }
  if (*found && (*found)->identity.is_complete && !(*found)->identity.is_changing) {
    std::optional<RecordedIdentity> recorded = (*found)->identity.recorded;
    bool is_asked = false;
    const auto note = [&] {
      is_asked = true;
      return GenerationCensus{};
    };
    auto identity = settle_identity(recorded, settings, note, which);
    Naming naming = (*found)->identity.naming;
    const bool is_same =
        !is_asked && *recorded == (*found)->identity.recorded && !settle_naming(which, naming);
    if (!identity) co_return std::unexpected(std::move(identity.error()));
    settled = {std::move(*identity), (*found)->identity.store_id, false};
    if (is_same) {
      remember((*found)->identity);
      if (!which.copied) co_return settled;  // Else a run may have ended before they were open.
      auto opening = open_buckets((*found)->identity);
      const auto opened = co_await std::move(opening);
      if (!opened) co_return std::unexpected(opened.error().why);
      co_return settled;
    }
  }
  std::expected<Identity, std::string> identity;
  // A refusal may end within change(): it reaps, and asks again.
  WhichStore quiet = which;
  quiet.contradicted = nullptr;
  const auto decide = [&](StoreIdentity& next, const Holdings& holdings) {
    std::optional<RecordedIdentity> recorded;
    if (next.is_complete) recorded = next.recorded;
    identity = settle_identity(recorded, settings, [&] { return holdings.census; }, quiet);
    if (!identity) return false;
    next.recorded = std::move(*recorded);
    next.naming.generation = next.recorded.generation;
    (void)settle_naming(which, next.naming);
    next.is_complete = true;
    settled.store_id = next.store_id;
    return true;
  };
  auto changing = change(decide);
  const auto changed = co_await std::move(changing);
  if (!changed) co_return std::unexpected(changed.error().why);
  if (!identity && which.contradicted) which.contradicted();
  if (!identity) co_return std::unexpected(std::move(identity.error()));
  settled.identity = std::move(*identity);
  co_return settled;
}

Task<std::expected<AdoptRoutes::Reply, NoReply>> IdentitySteps::adopt(AdoptRoutes verb,
                                                                      IdentitySettings settings) {
  auto reading = read();
  const auto found = co_await std::move(reading);
  if (!found) co_return no(Code::unavailable, found.error().why);  // Nothing has changed yet.
  if (!*found) co_return no(Code::unavailable, "the store has lost its identity");
  const StoreIdentity& recorded = (*found)->identity;
  const bool is_same = !recorded.is_changing && recorded.naming.routes == verb.routes &&
                       recorded.naming.key_fields == verb.key_fields;
  AdoptRoutes::Reply reply{recorded.recorded.generation, {}};
  if (auto why_not = why_not_named_by(recorded.recorded, settings)) {
    reply = {0, std::move(*why_not)};
    co_return reply;
  }
  if (is_same) {
    remember(recorded);
    co_return reply;
  }
  const auto decide = [&](StoreIdentity& next, const Holdings& holdings) {
    if (auto why_not = why_not_named_by(next.recorded, settings)) {
      reply = {0, std::move(*why_not)};
      return false;
    }
    const auto visit = [&](const std::function<bool(const std::string&)>& see) {
      (void)std::ranges::all_of(holdings.operations, see);
      return true;
    };
    AdoptRoutes asked = verb;
    next.naming.by_operation = next.recorded.key_scope == "operation";
    reply = idem::adopt(next.naming, asked, {visit});
    next.recorded.generation = next.naming.generation;
    return reply.why_not.empty();
  };
  auto changing = change(decide);
  const auto changed = co_await std::move(changing);
  if (!changed) co_return std::unexpected(changed.error());
  co_return reply;
}

Task<void> IdentitySteps::repair(std::size_t bucket) {
  auto reading = read();
  const auto found = co_await std::move(reading);
  if (!found || !*found || !(*found)->identity.is_complete) co_return;
  const StoreIdentity& identity = (*found)->identity;
  if (identity.is_changing) {
    auto asking_time = now();
    const auto time = co_await std::move(asking_time);
    if (!time || !is_abandoned(identity, *time)) co_return;
    const auto take_back = [](StoreIdentity&, const Holdings&) { return true; };
    auto changing = change(take_back);
    (void)co_await std::move(changing);
    co_return;
  }
  Task<QuestionResult> asking = client_.ask(open_question(bucket, identity));
  (void)co_await std::move(asking);
}

}  // namespace idem::redis
