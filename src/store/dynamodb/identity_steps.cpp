#include "store/dynamodb/identity_steps.hpp"

#include "core/naming/adopt_routes.hpp"
#include "core/naming/copied_identity.hpp"
#include "core/record/which_store.hpp"
#include "json/writer.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"
#include "store/dynamodb/table.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>

namespace idem::dynamodb {
namespace {

using Code = StoreError::Code;

constexpr std::string_view used = "u";

std::unexpected<NoReply> no(Code code, std::string why) {
  return std::unexpected(NoReply{code, std::move(why)});
}

std::string other_generation(std::uint64_t generation) {
  return "the store's identity is of generation " + std::to_string(generation);
}

}  // namespace

Task<std::expected<std::optional<IdentitySteps::Stored>, NoReply>> IdentitySteps::read() {
  const MonotonicTime asked_at = MonotonicClock::now();
  auto reading = client_.read(identity_key(), true);
  const auto item = co_await std::move(reading);
  if (!item) co_return std::unexpected(item.error());
  if (!*item) {
    if (store_id_) {
      lost_ = "the store " + store_id_text(*store_id_) +
              " has lost its identity, so it is unknown what ran: it admits no new work until it "
              "is opened again";
    }
    co_return std::nullopt;
  }
  auto value = parse_identity_value((*item)->bytes(attribute::value));
  if (!value) co_return no(Code::refused, std::string(value.error()));
  Stored stored{std::move(*value), (*item)->number(used).value_or(0) != 0};
  if (store_id_ && stored.value.identity.store_id != *store_id_) {
    lost_ = another_store(*store_id_, stored.value.identity.store_id);
  }
  remember(stored, asked_at);
  co_return stored;
}

void IdentitySteps::remember(const Stored& stored, MonotonicTime asked_at) {
  if (known_ && asked_at < asked_at_) return;
  known_ = stored;
  asked_at_ = asked_at;
}

Task<std::expected<bool, NoReply>> IdentitySteps::swap(std::optional<Stored> before, Stored after) {
  const MonotonicTime asked_at = MonotonicClock::now();
  Update update(identity_key());
  if (before) {
    update.if_equal(attribute::version, Bytes{std::string(bytes_of(before->value.version))});
    // The mark that it is used changes no version, so that nodes need not agree on one.
    if (before->is_used) {
      update.if_equal(used, std::int64_t{1});
    } else {
      update.if_missing(used);
    }
  } else {
    update.if_absent();
  }
  const std::string version(bytes_of(after.value.version));
  update.set(attribute::version, Bytes{version})
      .set(attribute::value, Bytes{to_identity_value(after.value.version, after.value.identity)});
  if (after.is_used) {
    update.set(used, std::int64_t{1});
  } else {
    update.remove(used);
  }
  Task<ReplyResult> asking = client_.write(update);
  const ReplyResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(reply.error());
  if (reply->is_refused) {
    // An earlier try of this one may have been done, and its answer lost.
    auto reading = client_.read(identity_key(), true);
    const auto item = co_await std::move(reading);
    if (!item) co_return std::unexpected(item.error());
    if (!*item || (*item)->bytes(attribute::version) != version) co_return false;
  }
  remember(after, asked_at);
  co_return true;
}

// ---- reserves ----

bool IdentitySteps::is_admitted(std::uint64_t generation) noexcept {
  wanted_at_ = MonotonicClock::now();
  if (!known_ || !lost_.empty() || !known_->is_used) return false;
  const StoreIdentity& identity = known_->value.identity;
  return !identity.is_changing && identity.recorded.generation == generation &&
         MonotonicClock::now() - asked_at_ < waits_.identity_lease;
}

bool IdentitySteps::is_due() const noexcept {
  const MonotonicTime now = MonotonicClock::now();
  const bool is_wanted = now - wanted_at_ < waits_.identity_lease;
  return is_wanted && !is_reading_ && now - asked_at_ >= waits_.identity_lease / 3;
}

Task<void> IdentitySteps::refresh() {
  if (is_reading_) co_return;
  is_reading_ = true;
  auto reading = read();
  (void)co_await std::move(reading);
  is_reading_ = false;
}

/// Before the first reserve by an identity, so that a change of it knows whether it has to wait.
Task<std::optional<StoreError>> IdentitySteps::mark_used() {
  Stored after = *known_;
  Update update(identity_key());
  update.if_equal(attribute::version, Bytes{std::string(bytes_of(after.value.version))})
      .set(used, std::int64_t{1});
  const MonotonicTime asked_at = MonotonicClock::now();
  Task<ReplyResult> asking = client_.write(update);
  const ReplyResult reply = co_await std::move(asking);
  if (!reply) co_return StoreError{Code::unavailable, reply.error().why};
  after.is_used = true;
  if (!reply->is_refused) {
    remember(after, asked_at);
  } else {
    asked_at_ = MonotonicTime{};  // It has changed: it is read again.
  }
  co_return std::nullopt;
}

Task<std::optional<StoreError>> IdentitySteps::admit(std::uint64_t generation) {
  wanted_at_ = MonotonicClock::now();
  const MonotonicTime until = wanted_at_ + limits::store_repeat_max;
  for (;;) {
    if (is_admitted(generation)) co_return std::nullopt;
    if (!lost_.empty()) co_return StoreError{Code::unavailable, lost_};
    if (MonotonicClock::now() >= until) {
      co_return StoreError{Code::unavailable, "the store's identity is being changed"};
    }
    const bool is_fresh = known_ && MonotonicClock::now() - asked_at_ < waits_.identity_lease;
    const bool is_changing = known_ && known_->value.identity.is_changing;
    if (is_fresh && !is_changing) {
      const std::uint64_t recorded = known_->value.identity.recorded.generation;
      if (recorded != generation) {
        co_return StoreError{Code::refused, other_generation(recorded)};
      }
      Task<std::optional<StoreError>> marking = mark_used();
      const auto failed = co_await std::move(marking);
      if (failed) co_return failed;
      continue;
    }
    if (is_fresh) {
      auto taking_back = take_back();
      (void)co_await std::move(taking_back);
      Task<void> pausing = client_.pause();
      co_await std::move(pausing);
    }
    auto reading = read();
    const auto found = co_await std::move(reading);
    if (!found) co_return to_store_error(found.error());
    if (!*found && lost_.empty()) {
      co_return StoreError{Code::unavailable, "the store has no identity yet"};
    }
  }
}

Task<std::optional<std::uint64_t>> IdentitySteps::claiming_generation() {
  const bool is_fresh = known_ && MonotonicClock::now() - asked_at_ < waits_.identity_lease;
  if (!is_fresh) {
    auto reading = read();
    (void)co_await std::move(reading);
  }
  if (!known_) co_return std::nullopt;
  if (known_->value.identity.is_changing) {
    auto taking_back = take_back();  // Of a node that is gone: nobody else may come for long.
    (void)co_await std::move(taking_back);
    co_return std::nullopt;
  }
  if (why_marked(known_->value.identity.recorded.key_scope)) co_return std::nullopt;
  co_return known_->value.identity.recorded.generation;
}

bool IdentitySteps::may_have_late_writes(StoreTime now) const noexcept {
  return !known_ || now - known_->value.identity.changing_since < limits::dynamodb_blank_time;
}

// ---- changes ----

bool IdentitySteps::is_abandoned(const StoreIdentity& identity, StoreTime now) const noexcept {
  // A change from the future began under a clock that has gone back since.
  return now - identity.changing_since >= waits_.change_abandoned ||
         identity.changing_since > now + waits_.change_abandoned;
}

/// Ends a change whose node is gone: nothing was decided.
Task<std::expected<void, NoReply>> IdentitySteps::take_back() {
  const auto time = now_();
  const bool is_over = time && known_ && known_->value.identity.is_changing &&
                       is_abandoned(known_->value.identity, *time);
  if (!is_over) co_return std::expected<void, NoReply>();
  const auto keep = [](StoreIdentity&, const Holdings&) { return true; };
  auto changing = change(keep, false);
  co_return co_await std::move(changing);
}

Task<std::expected<IdentitySteps::Stored, NoReply>> IdentitySteps::begin_change() {
  const MonotonicTime until =
      MonotonicClock::now() + waits_.change_abandoned + waits_.change + limits::store_repeat_max;
  while (MonotonicClock::now() < until) {
    auto reading = read();
    const auto found = co_await std::move(reading);
    if (!found) co_return std::unexpected(found.error());
    if (!*found) co_return no(Code::unavailable, "the store has lost its identity");
    const auto time = now_();
    if (!time) co_return no(Code::unavailable, "the service has not shown its time yet");
    const Stored& stored = **found;
    if (!stored.value.identity.is_changing || is_abandoned(stored.value.identity, *time)) {
      Stored next = stored;
      next.value.version = versions_.next();
      ++next.value.identity.change;
      next.value.identity.is_changing = true;
      next.value.identity.changing_since = *time;
      auto swapping = swap(stored, next);
      const auto swapped = co_await std::move(swapping);
      if (!swapped) co_return std::unexpected(swapped.error());
      if (*swapped) co_return next;
    }
    Task<void> pausing = client_.pause();
    co_await std::move(pausing);
  }
  co_return no(Code::unavailable, "another node is changing the store's identity");
}

Task<bool> IdentitySteps::beat(Stored& begun) {
  const auto time = now_();
  if (!time) co_return false;
  if (*time - begun.value.identity.changing_since < waits_.change_abandoned / 4) co_return true;
  Stored next = begun;
  next.value.version = versions_.next();
  next.value.identity.changing_since = *time;
  auto swapping = swap(begun, next);
  const auto swapped = co_await std::move(swapping);
  if (!swapped || !*swapped) co_return false;
  begun = next;
  co_return true;
}

Task<std::expected<Holdings, NoReply>> IdentitySteps::survey(Stored& begun) {
  // By then every node has noticed the change, and every reserve under way has met its deadline.
  Task<void> sleeping = client_.loop().sleep(begun.is_used ? waits_.change : Millis(0));
  co_await std::move(sleeping);
  const Beat beating = [&] { return beat(begun); };
  auto asking = survey_(beating);
  co_return co_await std::move(asking);
}

Task<std::expected<void, NoReply>> IdentitySteps::change(Decide decide, bool needs_survey) {
  auto beginning = begin_change();
  auto begun = co_await std::move(beginning);
  if (!begun) co_return std::unexpected(begun.error());
  const StoreIdentity before = begun->value.identity;
  std::expected<Holdings, NoReply> holdings;
  if (needs_survey) {
    auto surveying = survey(*begun);
    holdings = co_await std::move(surveying);
  }
  Stored last = *begun;
  last.value.version = versions_.next();
  const bool is_decided = holdings && decide(last.value.identity, *holdings);
  if (!is_decided) last.value.identity = begun->value.identity;
  last.value.identity.is_changing = false;
  const bool is_new = last.value.identity.recorded.generation != before.recorded.generation;
  if (is_new) {
    random_bytes(last.value.identity.generation_mark);
    last.is_used = false;
  }
  auto swapping = swap(*begun, last);
  const auto swapped = co_await std::move(swapping);
  if (!holdings) co_return std::unexpected(holdings.error());
  if (!swapped) co_return std::unexpected(swapped.error());
  if (!*swapped) {
    co_return no(Code::unavailable, "another node took over the change of the store's identity");
  }
  co_return std::expected<void, NoReply>();
}

// ---- the start ----

Task<std::expected<bool, NoReply>> IdentitySteps::is_table_empty() {
  json::Writer out;
  out.begin_object();
  out.member("TableName", client_.table());
  out.member("Limit", 1);
  out.flag("ConsistentRead", true);
  out.end_object();
  Task<ReplyResult> asking = client_.ask({"Scan", out.take()});
  const ReplyResult reply = co_await std::move(asking);
  if (!reply) co_return std::unexpected(reply.error());
  const json::Value* const items = reply->body.find("Items");
  const auto* const all = items != nullptr ? std::get_if<json::Array>(&items->is) : nullptr;
  co_return all != nullptr && all->empty();
}

Task<std::expected<IdentitySteps::Settled, std::string>> IdentitySteps::make(
    IdentitySettings settings, WhichStore which) {
  std::optional<RecordedIdentity> first;
  auto identity = settle_identity(first, settings, [] { return GenerationCensus{}; }, which);
  if (!identity) co_return std::unexpected(std::move(identity.error()));
  auto looking = is_table_empty();
  const auto is_empty = co_await std::move(looking);
  if (!is_empty) co_return std::unexpected(is_empty.error().why);
  if (!*is_empty) {
    // Another node that starts at the same time may have made it since.
    auto reading = read();
    const auto found = co_await std::move(reading);
    if (!found) co_return std::unexpected(found.error().why);
    if (!*found) {
      co_return std::unexpected(
          "the table has items, and no identity: they are not this store's, or its identity was "
          "lost, and retries of its keys would run again; empty the table as a whole, bring the "
          "identity back, or name another table");
    }
  }
  Stored made;
  made.value.version = versions_.next();
  StoreIdentity& next = made.value.identity;
  random_bytes(next.store_id);
  random_bytes(next.generation_mark);
  next.recorded = *first;
  next.naming.generation = next.recorded.generation;
  (void)settle_naming(which, next.naming);
  next.change = 1;
  next.is_complete = true;
  auto swapping = swap(std::nullopt, made);
  const auto swapped = co_await std::move(swapping);
  if (!swapped) co_return std::unexpected(swapped.error().why);
  if (!*swapped) {  // Another node was first.
    auto settling = settle(std::move(settings), std::move(which));
    co_return co_await std::move(settling);
  }
  store_id_ = next.store_id;
  co_return Settled{std::move(*identity), next.store_id, true};
}

Task<std::expected<IdentitySteps::Settled, std::string>> IdentitySteps::settle(
    IdentitySettings settings, WhichStore which) {
  auto reading = read();
  const auto found = co_await std::move(reading);
  if (!found) co_return std::unexpected(found.error().why);
  std::optional<StoreId> there;
  if (*found) there = (*found)->value.identity.store_id;
  auto refusal = why_not(which, there);
  if (refusal) co_return std::unexpected(std::move(*refusal));
  if (!*found) {
    auto making = make(std::move(settings), std::move(which));
    co_return co_await std::move(making);
  }
  Settled settled{.identity = {}, .store_id = *there};
  const StoreIdentity& known = (*found)->value.identity;
  if (which.look) {
    std::optional<RecordedIdentity> recorded = known.recorded;
    const auto census = [&] { return present_generation(*recorded); };
    auto identity = settle_identity(recorded, settings, census, which);
    if (!identity) co_return std::unexpected(std::move(identity.error()));
    store_id_ = settled.store_id;
    settled.identity = std::move(*identity);
    co_return settled;
  }
  if (!known.is_changing) {
    std::optional<RecordedIdentity> recorded = known.recorded;
    bool is_asked = false;
    const auto note = [&] {
      is_asked = true;
      return GenerationCensus{};
    };
    auto identity = settle_identity(recorded, settings, note, which);
    Naming naming = known.naming;
    const bool is_same = !is_asked && *recorded == known.recorded && !settle_naming(which, naming);
    if (!identity) co_return std::unexpected(std::move(identity.error()));
    settled.identity = std::move(*identity);
    if (is_same) {
      store_id_ = settled.store_id;
      co_return settled;
    }
  }
  std::expected<Identity, std::string> identity;
  // A refusal may end within change(): it reaps, and asks again.
  WhichStore quiet = which;
  quiet.contradicted = nullptr;
  const auto decide = [&](StoreIdentity& next, const Holdings& holdings) {
    std::optional<RecordedIdentity> recorded = next.recorded;
    identity = settle_identity(recorded, settings, [&] { return holdings.census; }, quiet);
    if (!identity) return false;
    next.recorded = std::move(*recorded);
    next.naming.generation = next.recorded.generation;
    (void)settle_naming(which, next.naming);
    return true;
  };
  // A source that is moved is closed already: there is nothing to wait for.
  const bool is_move = which.copied && which.copied->opening == CopiedIdentity::Opening::move;
  auto changing = change(decide, !is_move);
  const auto changed = co_await std::move(changing);
  if (!changed) co_return std::unexpected(changed.error().why);
  if (!identity && which.contradicted) which.contradicted();
  if (!identity) co_return std::unexpected(std::move(identity.error()));
  settled.identity = std::move(*identity);
  store_id_ = settled.store_id;
  co_return settled;
}

Task<std::expected<AdoptRoutes::Reply, NoReply>> IdentitySteps::adopt(AdoptRoutes verb,
                                                                      IdentitySettings settings) {
  auto reading = read();
  const auto found = co_await std::move(reading);
  if (!found) co_return no(Code::unavailable, found.error().why);  // Nothing has changed yet.
  if (!*found) co_return no(Code::unavailable, "the store has lost its identity");
  const StoreIdentity& recorded = (*found)->value.identity;
  AdoptRoutes::Reply reply{recorded.recorded.generation, {}};
  if (auto why_not = why_not_named_by(recorded.recorded, settings)) {
    reply = {0, std::move(*why_not)};
    co_return reply;
  }
  const bool is_same = !recorded.is_changing && recorded.naming.routes == verb.routes &&
                       recorded.naming.key_fields == verb.key_fields;
  if (is_same) co_return reply;
  const auto decide = [&](StoreIdentity& next, const Holdings& holdings) {
    if (auto why_not = why_not_named_by(next.recorded, settings)) {
      reply = {0, std::move(*why_not)};
      return false;
    }
    const auto visit = [&](const std::function<bool(const std::string&)>& see) {
      (void)std::ranges::all_of(holdings.operations, see);
      return holdings.census.complete;
    };
    AdoptRoutes asked = verb;
    next.naming.by_operation = next.recorded.key_scope == "operation";
    reply = idem::adopt(next.naming, asked, {visit});
    next.recorded.generation = next.naming.generation;
    return reply.why_not.empty();
  };
  auto changing = change(decide, true);
  const auto changed = co_await std::move(changing);
  if (!changed) co_return std::unexpected(changed.error());
  co_return reply;
}

}  // namespace idem::dynamodb
