#include "admin/keys.hpp"

#include "admin/deciding.hpp"
#include "admin/find.hpp"
#include "admin/keys_json.hpp"
#include "admin/orders.hpp"
#include "admin/replies.hpp"
#include "admin/verdicts.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/exchange/problem.hpp"
#include "core/record/store_clock.hpp"
#include "core/record/stored_fence.hpp"
#include "core/transitions/record_table.hpp"
#include "loop/store_link.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>

namespace idem::admin {
namespace {

using Verdict = Resolve::Verdict;

constexpr std::string_view keys_path = "/v1/keys";

constexpr Millis counts_beside_a_search_max = std::chrono::minutes(1);

WireAnswer no_such_key() {
  return to_answer({.code = ProblemCode::not_found, .detail = "No record has this ref."});
}

/// What came of an order, for the audit.
std::string came_of(const StoreResult& result) {
  if (!result) return error_text(result.error());
  const auto& reply = std::get<Resolve::Reply>(*result);
  std::string state(reply.state ? idem::name_of(*reply.state) : "none");
  if (reply.verdict == Verdict::done) return state;
  return "refused: " + std::string(name_of(reply.verdict)) + ", " + state;
}

/// What no store filters by.
bool is_shown(const Record& record, const KeysQuery& query) {
  const bool is_new_enough = !query.created_from || record.created_at >= *query.created_from;
  return is_new_enough && (!query.contested || record.is_contested);
}

}  // namespace

Task<WireAnswer> KeysApi::answer_to(http::ServerStream& client, const Caller& caller) {
  const auto& head = client.head();
  const std::string_view target = head.origin_form;
  const auto path = target.substr(0, target.find('?'));
  const auto query = path.size() < target.size() ? target.substr(path.size() + 1) : "";
  if (path == keys_path) {
    auto page = co_await list(query, caller.role);
    co_return page;
  }
  if (!query.empty()) co_return invalid("This path has no parameters.");
  auto rest = path.substr(keys_path.size() + 1);
  const auto ref = rest.substr(0, rest.find('/'));
  const auto what = rest.substr(std::min(ref.size() + 1, rest.size()));
  if (rest == "refs") {
    if (!is_json(head)) co_return invalid("Content-Type must be application/json.", 415);
    auto keys = co_await client.read_body(limits::admin_body_bytes_max, parts_.spill);
    if (!keys) co_return to_answer(http::problem_of(keys.error()));
    co_return name_keys(keys->bytes());
  }
  const auto id = parse_handle(ref);
  if (!id) co_return invalid("The ref of a record has 32 hexadecimal digits in lower case.");
  if (ref.size() == rest.size()) {
    auto page = co_await show(*id, caller.role);
    co_return page;
  }
  const bool resolves = what == "resolve";  // The head's bytes go with the body.
  auto reading = read_order(parts_, client, caller);
  const auto order = co_await reading;
  if (!order) co_return order.error();
  if (resolves) {
    auto answer = co_await resolve(*id, *order);
    co_return answer;
  }
  auto answer = co_await release(*id, *order);
  co_return answer;
}

Task<StoreResult> KeysApi::ask(StoreCall& call) {
  auto asking = ask_store(parts_.loop, parts_.store, call);
  auto result = co_await asking;
  if (!result) shard_.store_errors.add();
  co_return result;
}

Task<WireAnswer> KeysApi::list(std::string_view text, Role role) {
  auto query = parse_keys_query(text, parts_.parse_duration);
  if (!query) co_return invalid(query.error());
  if (role < Role::support && (query->key || query->find || !query->values.empty())) {
    co_return to_answer(
        {.code = ProblemCode::role_missing,
         .detail = "A search by key or value and values of bodies need the role support."});
  }
  // The counts beside one record are no reason to count millions.
  const bool is_search = query->key || query->find;
  auto counting = census_.recent(is_search ? counts_beside_a_search_max : Millis(0));
  const auto counted = co_await counting;
  if (!counted) {
    shard_.store_errors.add();
    co_return store_trouble(counted.error());
  }
  const Census& census = *counted;
  const StoreTime now = census.now;
  if (query->older_than) query->list.created_before = now - *query->older_than;
  if (query->newer_than) query->created_from = now - *query->newer_than;
  if (query->key) {
    auto page = co_await find_by_key(*query, census);
    co_return page;
  }
  if (query->find) {
    auto page = co_await find_by_value(*query, census);
    co_return page;
  }
  const std::size_t limit = query->list.limit;
  // One more than the page shows: its presence means that there is another page.
  query->list.limit = limit + 1;
  StoreCall call = std::move(query->list);
  auto listed = co_await ask(call);
  if (!listed) co_return store_trouble(listed.error());
  auto& records = std::get<std::vector<Record>>(*listed);
  std::optional<RecordId> next;
  if (records.size() > limit) {
    records.resize(limit);
    next = records.back().id;
  }
  std::vector<ListedKey> keys;
  for (Record& record : records) {
    if (!is_shown(record, *query)) continue;
    auto values = co_await values_of(record, *query);
    if (!values) co_return store_trouble(values.error());
    keys.push_back({std::move(record), std::move(*values)});
  }
  co_return json_answer(keys_page(keys, next, census));
}

// A listing contains no bodies, so each stored body is read on its own.
Task<std::expected<std::string, StoreError>> KeysApi::values_of(const Record& record,
                                                                const KeysQuery& query) {
  if (query.values.empty()) co_return std::string();
  if (!record.response) co_return admin::values_of(std::nullopt, query.values);
  StoreCall find = Find{record.id};
  auto found = co_await ask(find);
  if (!found) co_return std::unexpected(std::move(found.error()));
  const auto& whole = std::get<std::optional<Record>>(*found);
  const bool is_kept = whole && whole->response;
  co_return is_kept ? admin::values_of(whole->response, query.values)
                    : admin::values_of(std::nullopt, query.values);
}

// Looks under all names under which a reserve of this key would look.
Task<WireAnswer> KeysApi::find_by_key(const KeysQuery& query, Census census) {
  const auto ids = ids_of(*query.list.scope, *query.list.operation, *query.key);
  List wanted = query.list;
  wanted.operation.reset();  // The id contains it; the record's may be a former name.
  std::vector<ListedKey> keys;
  for (const RecordId& id : ids) {
    StoreCall find = Find{id};
    auto found = co_await ask(find);
    if (!found) co_return store_trouble(found.error());
    auto& record = std::get<std::optional<Record>>(*found);
    if (!record || !is_listed(wanted, *record)) continue;
    if (!is_shown(*record, query)) continue;
    std::string values;
    if (!query.values.empty()) values = admin::values_of(record->response, query.values);
    keys.push_back({without_bodies(std::move(*record)), std::move(values)});
  }
  co_return json_answer(keys_page(keys, std::nullopt, census));
}

Task<WireAnswer> KeysApi::find_by_value(const KeysQuery& query, Census census) {
  auto searching = search(parts_.loop, parts_.store, *query.find);
  auto found = co_await searching;
  if (!found) co_return store_trouble(found.error());
  std::vector<ListedKey> keys;
  for (auto& [id, found_by] : found->records) {
    if (keys.size() == query.list.limit) {
      found->searched.has_more = true;
      break;
    }
    StoreCall find = Find{id};
    auto looked = co_await ask(find);
    if (!looked && looked.error().code == StoreError::Code::damaged) {
      ++found->searched.unreadable;
      continue;
    }
    if (!looked) co_return store_trouble(looked.error());
    auto& record = std::get<std::optional<Record>>(*looked);
    if (!record || !is_listed(query.list, *record) || !is_shown(*record, query)) continue;
    std::string values;
    if (!query.values.empty()) values = admin::values_of(record->response, query.values);
    keys.push_back({without_bodies(std::move(*record)),
                    std::move(values),
                    {found_by.begin(), found_by.end()}});
  }
  co_return json_answer(keys_page(keys, std::nullopt, census, &found->searched));
}

std::set<RecordId> KeysApi::ids_of(const std::string& scope, const std::string& operation,
                                   const std::string& key) const {
  const auto& identity = parts_.store.identity();
  std::vector<std::string> parts = parts_.naming_parts(operation);
  parts.emplace_back();  // With key_scope tenant, no operation is part of the id.
  std::vector<Secret> secrets = identity.older;
  secrets.push_back(identity.secret);
  std::set<RecordId> ids;
  for (const Secret& secret : secrets) {
    for (const auto& part : parts) {
      ids.insert(record_id(secret, scope, part, key));
    }
  }
  return ids;
}

WireAnswer KeysApi::name_keys(std::string_view body) const {
  const auto keys = parse_named_keys(body);
  if (!keys) return invalid(keys.error());
  std::vector<std::set<RecordId>> refs;
  for (const NamedKey& one : *keys) refs.push_back(ids_of(one.scope, one.operation, one.key));
  return json_answer(refs_page(refs));
}

Task<WireAnswer> KeysApi::show(RecordId id, Role role) {
  const Bodies bodies = bodies_for(role);
  StoreCall find = Find{id};
  auto found = co_await ask(find);
  if (!found) co_return store_trouble(found.error());
  const auto& record = std::get<std::optional<Record>>(*found);
  if (!record) co_return no_such_key();
  StoreCall read = ReadEvidence{id};
  auto evidence = co_await ask(read);
  if (!evidence && evidence.error().code == StoreError::Code::damaged) {
    co_return json_answer(key_page(*record, {}, evidence.error().detail, bodies, parts_.links));
  }
  if (!evidence) co_return store_trouble(evidence.error());
  co_return json_answer(
      key_page(*record, std::get<std::vector<EvidenceEntry>>(*evidence), {}, bodies, parts_.links));
}

Task<WireAnswer> KeysApi::decide(const ApprovalRequest& request, const OrderBody& order) {
  const auto id = parse_handle(request.ref);
  if (!id) co_return no_such_key();
  auto deciding = request.kind == ApprovalKind::resolve ? resolve(*id, order) : release(*id, order);
  auto answer = co_await deciding;
  co_return answer;
}

Task<std::optional<WireAnswer>> KeysApi::made_before(RecordId id, const OrderBody& received) {
  StoreCall read = ReadEvidence{id};
  const auto log = co_await ask(read);
  if (!log) co_return store_trouble(log.error());
  const auto is_made = [&](const EvidenceEntry& entry) {
    return entry.applied && entry.reason.contains(received.note());
  };
  if (std::ranges::none_of(std::get<std::vector<EvidenceEntry>>(*log), is_made)) {
    co_return std::nullopt;
  }
  auto page = co_await show(id, Role::operates);
  co_return page;
}

Task<std::optional<WireAnswer>> KeysApi::in_place_of(ApprovalKind kind, RecordId id, Seen as_it_was,
                                                     const OrderBody& received) {
  const std::string seen = state_text(as_it_was.record);
  if (received.approved) {
    auto looking = made_before(id, received);
    auto made = co_await looking;
    if (made) co_return made;
    if (seen != received.approved->seen) co_return changed_since(received, seen);
    co_return std::nullopt;
  }
  if (!approvals_.must_wait(kind, received)) co_return std::nullopt;
  if (!as_it_was.record) co_return no_such_key();
  if (!as_it_was.note.empty()) {
    co_return to_answer({.code = ProblemCode::state_refused,
                         .detail = "Nobody is asked to approve it, because the order would fail" +
                                   as_it_was.note + "."});
  }
  const unsigned needs = parts_.login.approvals().of(kind);
  auto asking = approvals_.ask({.kind = kind,
                                .needs = needs,
                                .ref = to_hex(id.bytes),
                                .seen = seen,
                                .reason = as_it_was.reason,
                                .given_at = as_it_was.now},
                               received);
  auto answer = co_await asking;
  co_return answer;
}

Task<WireAnswer> KeysApi::resolve(RecordId id, const OrderBody& received) {
  const std::string& source = received.decider;
  auto order = parse_resolve(received.body);
  if (!order) co_return invalid(order.error());
  StoreCall count = Count{};
  auto counted = co_await ask(count);
  if (!counted) co_return store_trouble(counted.error());
  const StoreTime now = std::get<Census>(*counted).now;
  // Of an approved order this was looked at when it was given.
  if (order->observed_at && !received.approved) {
    auto why_not = why_incomparable(*order->observed_at, now, wall_time());
    if (why_not) co_return invalid(*why_not);
  }
  Resolve verb = std::move(order->verb);
  verb.id = id;
  verb.source = source;
  // Of an approved order, the one who asked for it had looked by then.
  const StoreTime looked_at = received.approved ? received.approved->given_at : now;
  verb.observed_at = order->observed_at.value_or(looked_at);
  verb.grace = parts_.evidence_grace;
  verb.reason += received.note();
  const std::string reason = verb.reason;
  StoreCall find = Find{id};
  const auto found = co_await ask(find);
  if (!found) co_return store_trouble(found.error());
  const auto& record = std::get<std::optional<Record>>(*found);
  const std::string note = foreseen(record, verb, now);
  auto gating = in_place_of(ApprovalKind::resolve, id, {record, now, note, reason}, received);
  auto instead = co_await gating;
  if (instead) co_return std::move(*instead);
  verb.reason += note;
  Deciding deciding(parts_, received.signer, "keys.resolve", to_hex(id.bytes));
  auto beginning = deciding.begin(reason, state_text(record));
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  StoreCall call = std::move(verb);
  auto result = co_await ask(call);
  auto ending = deciding.end(came_of(result));
  co_await ending;
  if (!result) co_return store_trouble(result.error());
  const auto reply = std::get<Resolve::Reply>(*result);
  const auto counted_as =
      reply.verdict == Verdict::done ? metrics::Reconciled::resolved : metrics::Reconciled::failed;
  shard_.reconciled[static_cast<std::size_t>(counted_as)].add();
  log_decision("resolve", id, source, reason, reply);
  if (reply.is_contradicted) {
    shard_.contradictions.add();
    parts_.log(LogLevel::error, "answer_contradicts_event", {{"operation_ref", to_hex(id.bytes)}});
  }
  auto answer = co_await answer_verdict(id, reply, received);
  co_return answer;
}

Task<WireAnswer> KeysApi::release(RecordId id, const OrderBody& received) {
  const std::string& source = received.decider;
  auto order = parse_release(received.body);
  if (!order) co_return invalid(order.error());
  order->id = id;
  order->source = source;
  order->reason += received.note();
  const std::string reason = order->reason;
  StoreCall count = Count{};
  const auto counted = co_await ask(count);
  if (!counted) co_return store_trouble(counted.error());
  StoreCall find = Find{id};
  const auto found = co_await ask(find);
  if (!found) co_return store_trouble(found.error());
  StoreCall read = ReadEvidence{id};
  const auto log = co_await ask(read);
  if (!log) co_return store_trouble(log.error());
  const auto& record = std::get<std::optional<Record>>(*found);
  const StoreTime now = std::get<Census>(*counted).now;
  const std::string note =
      foreseen(record, *order, std::get<std::vector<EvidenceEntry>>(*log), now);
  auto gating = in_place_of(ApprovalKind::release, id, {record, now, note, reason}, received);
  auto instead = co_await gating;
  if (instead) co_return std::move(*instead);
  order->reason += note;
  Deciding deciding(parts_, received.signer, "keys.release", to_hex(id.bytes));
  auto beginning = deciding.begin(reason, state_text(record));
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  StoreCall call = std::move(*order);
  auto result = co_await ask(call);
  auto ending = deciding.end(came_of(result));
  co_await ending;
  if (!result) co_return store_trouble(result.error());
  const auto reply = std::get<Resolve::Reply>(*result);
  log_decision("release", id, source, reason, reply);
  auto answer = co_await answer_verdict(id, reply, received);
  co_return answer;
}

void KeysApi::log_decision(std::string_view event, const RecordId& id, const std::string& source,
                           const std::string& reason, const Resolve::Reply& reply) {
  const bool done = reply.verdict == Verdict::done;
  parts_.log(done ? LogLevel::info : LogLevel::warning, event,
             {{"operation_ref", to_hex(id.bytes)},
              {"source", source},
              {"reason", reason},
              {"verdict", std::string(name_of(reply.verdict))},
              {"state", std::string(reply.state ? idem::name_of(*reply.state) : "none")}});
}

Task<WireAnswer> KeysApi::answer_verdict(RecordId id, Resolve::Reply reply,
                                         const OrderBody& received) {
  if (reply.verdict == Verdict::done) {
    census_.forget();
    auto page = co_await show(id, Role::operates);
    co_return page;
  }
  if (received.approved) {
    // Another process, which was thought dead, may have made the decision meanwhile.
    auto looking = made_before(id, received);
    auto made = co_await looking;
    if (made) co_return std::move(*made);
  }
  if (reply.verdict == Verdict::not_found) co_return no_such_key();
  StoreCall find = Find{id};
  auto found = co_await ask(find);
  // The record may have changed meanwhile: it only adds details to the verdict.
  const std::optional<Record> record =
      found ? std::get<std::optional<Record>>(*found) : std::nullopt;
  const std::string from = counts_from(reply, record, parts_.evidence_grace);
  Problem problem{.code = ProblemCode::state_refused, .detail = {}};
  problem.detail = why_refused(reply, record, from);
  problem.operation = id;
  problem.state = reply.state;
  co_return refused_answer(problem, name_of(reply.verdict), from);
}

}  // namespace idem::admin
