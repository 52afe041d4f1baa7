#include "store/redis/cache.hpp"

#include "core/transitions/transitions.hpp"
#include "store/redis/retrying_client.hpp"
#include "store/redis/scripts.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::redis {
namespace {

constexpr int server_errors_from = 500;

/// Otherwise the store matched one of several and does not say which: an entry under the wrong
/// fingerprint would answer requests that the store knows to be different.
bool asks_with_one(const Reserve& verb) {
  return verb.fingerprints.size() == 1 && verb.also.empty();
}

bool may_be_kept(const StoredResponse& response) {
  return response.status < server_errors_from && response.body_stored &&
         response.body.size() <= limits::cache_body_max;
}

/// Any eviction policy will do, but a replica accepts no writes.
Task<std::optional<std::string>> check(Connection& connection) {
  Task<CommandResult> asking = connection.ask(command({"ROLE"}));
  const CommandResult role = co_await std::move(asking);
  if (role && role->at(0).text == "slave") co_return "it is a replica";
  auto loading = load_scripts(connection);
  co_return co_await std::move(loading);
}

}  // namespace

Cache::Cache(Loop& loop, Url url, const Secret& store_secret, std::function<StoreTime()> clock,
             Millis reply_max, std::function<void(const std::string&)> report)
    : loop_(loop),
      servers_(loop, url, reply_max, 1),
      codec_(store_secret),
      prefix_(url.prefix + ":cache:" + codec_.store_tag() + ":"),
      clock_(std::move(clock)),
      report_(std::move(report)) {
  servers_.set_check([](Connection& connection) { return check(connection); });
}

void Cache::close() {
  is_closed_ = true;
  servers_.close();
}

std::string Cache::key_of(const RecordId& id) const { return prefix_ + to_hex(id.bytes); }

void Cache::say(const std::string& what) {
  if (report_) report_(what);
}

// Callers do not wait for a connection: meanwhile they ask the store.
bool Cache::is_reached(unsigned slot) {
  if (servers_.open_at(slot) != nullptr) return true;
  if (!is_connecting_ && !is_closed_) {
    is_connecting_ = true;
    loop_.spawn(connect(slot));
  }
  return false;
}

Task<void> Cache::connect(unsigned slot) {
  Task<Connection*> reaching = servers_.of(slot);
  const Connection* const connection = co_await std::move(reaching);
  if (connection == nullptr && !is_out_) say("the cache cannot be used: " + servers_.why());
  if (connection != nullptr && is_out_) say("the cache can be used again");
  is_out_ = connection == nullptr;
  is_connecting_ = false;
}

std::optional<StoreTime> Cache::store_now() const {
  if (clock_) return clock_();
  const MonotonicTime now = MonotonicClock::now();
  if (!store_clock_.is_known() || now - store_clock_at_ > limits::cache_clock_age_max) {
    return std::nullopt;
  }
  return store_clock_.at(now);
}

// ---- reading ----

Task<std::optional<ReserveOutcome>> Cache::look(const Reserve& verb) {
  // The record may have another name: only the store can find it.
  if (!verb.also.empty()) co_return std::nullopt;
  const std::string key = key_of(verb.id);
  const unsigned slot = slot_of(key);
  if (!is_reached(slot)) co_return std::nullopt;
  Task<CommandResult> asking = servers_.ask_open(slot, command({"GET", key}));
  const CommandResult answer = co_await std::move(asking);
  if (!answer || answer->kind != Reply::Kind::text) co_return std::nullopt;
  auto entry = codec_.decode(verb.id, answer->text);
  if (!entry) co_return std::nullopt;
  co_return believed(verb, std::move(*entry));
}

std::optional<ReserveOutcome> Cache::believed(const Reserve& verb, CacheEntry entry) {
  const auto now = store_now();
  if (!now || entry.generation != verb.generation) return std::nullopt;
  // The store decides whether that is key misuse.
  if (!transitions::any_matches(verb.fingerprints, entry.fingerprint)) return std::nullopt;
  const StoreTime latest = *now + (clock_ ? Millis::zero() : Millis(limits::cache_clock_margin));
  if (latest >= entry.until) return std::nullopt;
  switch (entry.kind) {
    case CacheEntry::Kind::ask:
      return std::nullopt;
    case CacheEntry::Kind::in_flight:
      if (latest >= entry.believed_until || codec_.token_digest(verb.token) == entry.token) {
        return std::nullopt;
      }
      return InProgress{entry.until - *now, verb.id, entry.fence, entry.until};
    case CacheEntry::Kind::completed:
      return Replay{std::move(*entry.response), entry.completed_at, entry.until, verb.id,
                    entry.until - latest,       entry.fence};
  }
  return std::nullopt;
}

// ---- writing ----

bool Cache::update_store_clock(StoreTime now, MonotonicTime asked) {
  const MonotonicTime at = MonotonicClock::now();
  if (at - asked > limits::cache_clock_margin) return false;
  store_clock_at_ = at;
  store_clock_.observe(now, at);
  return true;
}

void Cache::note_doubt(const RecordId& id) {
  if (doubted_.size() >= limits::store_attempts_kept_max) doubted_.erase(doubted_.begin());
  doubted_.insert(id);
}

void Cache::note_reserve(const Reserve& verb, const ReserveOutcome& outcome, const Asked& asked) {
  if (const auto* running = std::get_if<InProgress>(&outcome)) {
    update_store_clock(running->locked_until - running->lease_remaining, asked.at);
  }
  if (const auto* replay = std::get_if<Replay>(&outcome)) {
    const bool is_timely =
        update_store_clock(replay->expires_at - replay->expires_in, asked.at) || clock_;
    if (!is_timely || !replay->fence || replay->id != verb.id) return;
    if (!asks_with_one(verb) || !may_be_kept(replay->response)) return;
    put(verb.id,
        {.kind = CacheEntry::Kind::completed,
         .fence = *replay->fence,
         .generation = verb.generation,
         .fingerprint = verb.fingerprints.front(),
         .until = replay->expires_at,
         .completed_at = replay->completed_at,
         .response = replay->response},
        replay->expires_in);
    return;
  }
  const auto* execute = std::get_if<Execute>(&outcome);
  if (execute == nullptr) return;
  // Granted under another name. A repeat under that name gets the same attempt, whose lease did not
  // begin then.
  if (execute->id != verb.id) return note_doubt(execute->id);
  const bool was_in_doubt = doubted_.erase(verb.id) > 0;
  const auto before = running_.find(verb.id);
  // A repeat: its lease did not begin now, and the store keeps the fingerprint of the first one.
  if (before != running_.end() && before->second.fence == execute->attempt.fence) return;
  if (running_.size() >= limits::store_attempts_kept_max) running_.erase(running_.begin());
  Kept kept{execute->attempt.fence, {}, verb.generation, verb.retention};
  // If a record runs once more, the store keeps its first fingerprint.
  if (!execute->again || asks_with_one(verb)) kept.fingerprint = verb.fingerprints.front();
  running_[verb.id] = kept;
  if (!asked.store || execute->again || was_in_doubt) return;
  const Millis believed =
      std::min<Millis>(limits::cache_in_flight_max, verb.lease - verb.lease / 4);
  const CacheEntry entry{.kind = CacheEntry::Kind::in_flight,
                         .fence = execute->attempt.fence,
                         .generation = verb.generation,
                         .fingerprint = *kept.fingerprint,
                         .until = *asked.store + verb.lease,
                         .believed_until = *asked.store + believed,
                         .token = codec_.token_digest(verb.token)};
  running_[verb.id].is_cached = put(verb.id, entry, believed);
}

void Cache::note_owner(const RecordId& id, const AttemptRef& attempt, const OwnerReply& reply,
                       std::optional<StoredResponse> response, MonotonicTime asked) {
  const auto found = running_.find(id);
  if (reply.verdict != Verdict::done) return;
  // An owner that names its attempt by the token alone has the newest known here, or an older one.
  if (!attempt.fence && found == running_.end()) return;
  CacheEntry entry{.kind = CacheEntry::Kind::ask,
                   .fence = attempt.fence ? *attempt.fence : found->second.fence};
  const bool is_known = found != running_.end() && found->second.fence == attempt.fence;
  const bool is_completed = reply.state == State::completed && reply.expires_at && response;
  Millis length = limits::cache_in_flight_max;
  if (is_known && is_completed) {
    const Kept& kept = found->second;
    const StoreTime completed_at = *reply.expires_at - kept.retention;
    const bool is_timely = update_store_clock(completed_at, asked) || clock_;
    if (is_timely && kept.fingerprint && may_be_kept(*response)) {
      entry = {.kind = CacheEntry::Kind::completed,
               .fence = kept.fence,
               .generation = kept.generation,
               .fingerprint = *kept.fingerprint,
               .until = *reply.expires_at,
               .completed_at = completed_at,
               .response = std::move(response)};
      length = kept.retention;
    }
  }
  const bool is_cached = found != running_.end() && found->second.is_cached;
  if (is_known && reply.state != State::in_progress) running_.erase(found);
  if (is_cached) return put_end(id, entry, length);
  put(id, entry, length);
}

std::string Cache::command_of(const std::string& key, const std::string& encoded,
                              Millis length) const {
  std::string command;
  scripts().cache_put.call(command, key, 2).add(encoded).add(std::int64_t{length.count()});
  return command;
}

bool Cache::put(const RecordId& id, const CacheEntry& entry, Millis length) {
  const std::string key = key_of(id);
  const unsigned slot = slot_of(key);
  if (!is_reached(slot) || length <= Millis::zero() || busy_ > limits::cache_puts_max ||
      servers_.open_at(slot)->unsent_bytes() > limits::cache_unsent_max) {
    return false;
  }
  ++busy_;
  loop_.spawn(put_there(slot, command_of(key, codec_.encode(id, entry), length)));
  return true;
}

void Cache::put_end(const RecordId& id, const CacheEntry& entry, Millis length) {
  if (busy_ > limits::cache_puts_max) return;
  const std::string key = key_of(id);
  const unsigned slot = slot_of(key);
  const CacheEntry ask{.kind = CacheEntry::Kind::ask, .fence = entry.fence};
  std::string otherwise = command_of(key, codec_.encode(id, ask), limits::cache_in_flight_max);
  const bool has_room = is_reached(slot) && length > Millis::zero() &&
                        servers_.open_at(slot)->unsent_bytes() <= limits::cache_unsent_max;
  std::string command =
      has_room ? command_of(key, codec_.encode(id, entry), length) : std::string();
  ++busy_;
  loop_.spawn(put_until_accepted(slot, std::move(command), std::move(otherwise)));
}

Task<CommandResult> Cache::put_once(unsigned slot, std::string command) {
  Task<CommandResult> asking = servers_.ask_open(slot, command);
  CommandResult answer = co_await std::move(asking);
  Connection* const connection = servers_.open_at(slot);
  if (answer && answer->is_error("NOSCRIPT") && connection != nullptr) {
    auto loading = load_scripts(*connection);
    const auto failed = co_await std::move(loading);
    if (!failed) {
      Task<CommandResult> again = servers_.ask_open(slot, std::move(command));
      answer = co_await std::move(again);
    }
  }
  co_return answer;
}

Task<void> Cache::put_there(unsigned slot, std::string command) {
  Task<CommandResult> putting = put_once(slot, std::move(command));
  (void)co_await std::move(putting);
  --busy_;
}

Task<void> Cache::put_until_accepted(unsigned slot, std::string command, std::string otherwise) {
  const MonotonicTime until = MonotonicClock::now() + limits::cache_in_flight_max;
  bool is_accepted = false;
  if (!command.empty()) {
    Task<CommandResult> putting = put_once(slot, std::move(command));
    const CommandResult answer = co_await std::move(putting);
    is_accepted = answer && answer->kind == Reply::Kind::number;
  }
  while (!is_accepted && !is_closed_ && MonotonicClock::now() < until) {
    Task<void> pausing = loop_.sleep(limits::store_repeat_interval);
    co_await std::move(pausing);
    if (!is_reached(slot)) continue;
    Task<CommandResult> putting = put_once(slot, otherwise);
    const CommandResult answer = co_await std::move(putting);
    is_accepted = answer && answer->kind == Reply::Kind::number;
  }
  --busy_;
}

}  // namespace idem::redis
