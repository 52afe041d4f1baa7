#include "store/postgres/opening.hpp"

#include "core/naming/adopt_routes.hpp"
#include "core/naming/copied_identity.hpp"
#include "core/naming/identity_settling.hpp"
#include "core/record/which_store.hpp"
#include "store/postgres/cells.hpp"
#include "store/postgres/hindrances.hpp"
#include "store/postgres/naming_rows.hpp"
#include "store/postgres/schema.hpp"
#include "store/postgres/server_check.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem::postgres {
namespace {

using Problem = std::optional<std::string>;

const Params no_params;

Task<Problem> check_server(Connection& connection) {
  const QueryResult answer =
      co_await connection.ask(server_check_sql, no_params, limits::store_reply_max);
  if (!answer) co_return failure_text(answer.error());
  co_return why_unsafe(*answer, connection.backend());
}

/// Idem has checksums of stored answers, requests and evidence only.
Task<Problem> warn_of_server(Connection& connection,
                             const std::function<void(const std::string&)>& warn) {
  const QueryResult answer =
      co_await connection.ask("SELECT pg_catalog.current_setting('data_checksums', true)",
                              no_params, limits::store_reply_max);
  if (!answer) co_return failure_text(answer.error());
  if (answer->cell(0, 0) == "off" && warn) {
    warn(
        "data_checksums is off: Idem finds damage in stored answers, requests and evidence, and "
        "records that contradict themselves, but not damage in every column of a record; stop the "
        "server and run pg_checksums --enable");
  }
  co_return std::nullopt;
}

/// Calls would wait for a lock on the tables, and so would this look at them.
Task<Problem> look_at_others(Connection& connection,
                             const std::function<void(const std::string&)>& warn) {
  const Hindrances found = co_await look_for_hindrances(connection);
  for (const std::string& one : found.of_vacuum) {
    if (warn) warn(one);
  }
  if (found.of_calls.empty()) co_return std::nullopt;
  co_return found.of_calls.front();
}

Task<std::expected<GenerationCensus, std::string>> take_census(Connection& connection) {
  GenerationCensus census;
  const QueryResult answer = co_await connection.ask(
      "SELECT DISTINCT s.generation FROM idem.slots s WHERE idem.is_live(s, idem.now())", no_params,
      limits::store_migration_max);
  if (!answer) co_return std::unexpected(failure_text(answer.error()));
  for (int row = 0; row < answer->size(); ++row) {
    census.empty = false;
    census.generations.insert(static_cast<std::uint64_t>(to_number(answer->cell(row, 0))));
  }
  co_return census;
}

Task<std::expected<std::optional<RecordedIdentity>, std::string>> read_identity(
    Connection& connection) {
  const QueryResult answer = co_await connection.ask(
      "SELECT i.secret, i.generation, i.key_scope, i.scope_source, d.generation, d.id"
      " FROM idem.identity i LEFT JOIN idem.digest_secrets d ON true ORDER BY d.generation",
      no_params, limits::store_reply_max);
  if (!answer) co_return std::unexpected(failure_text(answer.error()));
  if (answer->size() == 0) co_return std::nullopt;
  RecordedIdentity recorded;
  for (int row = 0; row < answer->size(); ++row) {
    Cells cells(*answer, row);
    const auto own = cells.bytes();
    if (own.size() != recorded.own.size()) {
      co_return std::unexpected(
          std::string("its identity is damaged: without the secret no record can be found"));
    }
    std::ranges::transform(own, recorded.own.begin(),
                           [](char c) { return static_cast<std::uint8_t>(c); });
    recorded.generation = static_cast<std::uint64_t>(cells.number());
    recorded.key_scope = cells.text();
    recorded.scope_source = cells.text();
    if (cells.is_null()) continue;
    const auto from = static_cast<std::uint64_t>(cells.number());
    recorded.epochs.push_back({from, cells.text()});
  }
  co_return recorded;
}

Task<Problem> write_identity(Connection& connection, const RecordedIdentity& recorded) {
  Params identity;
  identity.bytes({reinterpret_cast<const char*>(recorded.own.data()), recorded.own.size()})
      .number(static_cast<std::int64_t>(recorded.generation))
      .text(as_text(recorded.key_scope))
      .text(as_text(recorded.scope_source));
  identity.array(Type::int8_array);
  for (const auto& epoch : recorded.epochs) {
    identity.append_number(static_cast<std::int64_t>(epoch.from));
  }
  identity.array(Type::text_array);
  for (const auto& epoch : recorded.epochs) identity.append_text(epoch.id);
  const QueryResult answer = co_await connection.ask(
      "SELECT idem.record_identity($1, $2, $3, $4, $5, $6)", identity, limits::store_reply_max);
  if (!answer) co_return failure_text(answer.error());
  co_return std::nullopt;
}

Task<std::expected<Uuid, std::string>> read_store_id(Connection& connection) {
  const QueryResult answer =
      co_await connection.ask(which_store_sql, no_params, limits::store_reply_max);
  if (!answer) co_return std::unexpected(failure_text(answer.error()));
  co_return store_id_in(*answer);
}

/// None: there is no store yet. The error is for people.
Task<std::expected<std::optional<Uuid>, std::string>> find_store_id(Connection& connection) {
  const QueryResult answer =
      co_await connection.ask(which_store_sql, no_params, limits::store_reply_max);
  if (!answer) co_return std::unexpected(failure_text(answer.error()));
  if (answer->size() == 0) co_return std::nullopt;
  const auto found = store_id_in(*answer);
  if (!found) co_return std::unexpected(found.error());
  co_return std::optional(*found);
}

/// Gives a new store a first generation that no other store has. A schema may be dropped and made
/// again under open connections: each reserve of a node of the former store is then refused within
/// its own statement, because its generation is another one. Below 2^52, so that AdoptRoutes can
/// add to it and every reader of JSON can hold it.
void begin_at_random(Identity& identity, RecordedIdentity& recorded) {
  std::array<std::uint8_t, 8> bytes{};
  random_bytes(bytes);
  std::uint64_t first = 0;
  for (const std::uint8_t byte : bytes) first = first << 8 | byte;
  first = (first >> 13) + 1;
  recorded.generation = first;
  identity.generation = first;
  for (SecretEpoch& epoch : recorded.epochs) epoch.from = first;
}

/// An identity, and the row to be recorded for it.
struct Settled {
  Identity identity;
  RecordedIdentity recorded;
  bool is_changed = false;
};

Task<std::expected<Settled, std::string>> settle_once(Connection& connection,
                                                      const IdentitySettings& settings,
                                                      const WhichStore& which) {
  auto recorded = co_await read_identity(connection);
  if (!recorded) co_return std::unexpected(std::move(recorded.error()));
  const auto before = *recorded;
  // All records are read only if that can matter.
  bool is_asked = false;
  const auto note = [&] {
    is_asked = true;
    return GenerationCensus{};
  };
  auto identity = settle_identity(*recorded, settings, note, which);
  if (!before && identity && !which.copied) begin_at_random(*identity, **recorded);
  if (is_asked) {
    const auto census = co_await take_census(connection);
    if (!census) co_return std::unexpected(census.error());
    *recorded = before;
    identity = settle_identity(*recorded, settings, [&] { return *census; }, which);
  }
  if (!identity) co_return std::unexpected(std::move(identity.error()));
  Settled settled{std::move(*identity), **recorded, *recorded != before};
  co_return settled;
}

/// Within the transaction that is open.
Task<std::expected<Opened, std::string>> settle(Connection& connection,
                                                const IdentitySettings& settings,
                                                const WhichStore& which) {
  auto settled = co_await settle_once(connection, settings, which);
  if (settled && settled->is_changed) {
    // A running node may have reserved, or adopted a route table, since this was read. It is read
    // again once no reserve can commit any more.
    const QueryResult alone = co_await connection.ask("SELECT idem.lock_generation_exclusively()",
                                                      no_params, limits::store_reply_max);
    if (!alone) co_return std::unexpected(failure_text(alone.error()));
    settled = co_await settle_once(connection, settings, which);
    if (settled && settled->is_changed) {
      auto problem = co_await write_identity(connection, settled->recorded);
      if (problem) co_return std::unexpected(std::move(*problem));
    }
  }
  if (!settled) co_return std::unexpected(std::move(settled.error()));
  if (which.copied) {
    auto naming = co_await read_naming(connection);
    if (!naming) co_return std::unexpected(failure_text(naming.error()));
    if (settle_naming(which, *naming)) {
      const QueryResult written = co_await write_naming(connection, *naming);
      if (!written) co_return std::unexpected(failure_text(written.error()));
    }
  }
  const auto store_id = co_await read_store_id(connection);
  if (!store_id) co_return std::unexpected(store_id.error());
  Opened opened;
  opened.store_id = *store_id;
  opened.identity = std::move(settled->identity);
  co_return opened;
}

}  // namespace

Task<std::expected<Opened, std::string>> open_database(Connection& connection,
                                                       const IdentitySettings& settings,
                                                       const PostgresOptions& options) {
  auto problem = co_await check_server(connection);
  if (problem) co_return std::unexpected(std::move(*problem));
  problem = co_await warn_of_server(connection, options.warn);
  if (problem) co_return std::unexpected(std::move(*problem));
  const QueryResult begun = co_await connection.run(
      "BEGIN; SET LOCAL lock_timeout = '30s'; SET LOCAL idle_in_transaction_session_timeout = "
      "'10s';"
      // Bodies in SQL are bound now: not to objects that others have put on a search path.
      " SET LOCAL search_path = pg_catalog, pg_temp;"
      " SELECT pg_advisory_xact_lock(1229210957, 3)",
      limits::store_migration_max);
  if (!begun) co_return std::unexpected(failure_text(begun.error()));
  if (options.which.look) problem = co_await look_at_others(connection, options.warn);
  if (problem) co_return std::unexpected(std::move(*problem));
  if (!connection.is_open()) co_return std::unexpected(std::string(no_answer));
  auto unsuitable = co_await bring_schema(connection, options.migrate);
  if (unsuitable) co_return std::unexpected(std::move(*unsuitable));
  const auto there = co_await find_store_id(connection);
  if (!there) co_return std::unexpected(there.error());
  // A refusal commits nothing, so the new schema is gone.
  auto refusal = why_not(options.which, *there);
  if (refusal) co_return std::unexpected(std::move(*refusal));
  std::expected<Opened, std::string> opened;
  if (options.as_recorded && there->has_value()) {
    opened->store_id = **there;
  } else {
    opened = co_await settle(connection, settings, options.which);
  }
  if (!opened) co_return opened;
  opened->is_new = !there->has_value();
  const QueryResult committed = co_await connection.run("COMMIT", limits::store_reply_max);
  if (!committed) co_return std::unexpected(failure_text(committed.error()));
  co_return opened;
}

Task<std::expected<std::int64_t, std::string>> check_again(Connection& connection,
                                                           const Uuid& store_id, Lineage& lineage) {
  auto problem = co_await check_server(connection);
  if (problem) co_return std::unexpected(std::move(*problem));
  const auto known = lineage.known_fence();
  const std::int64_t known_timeline = lineage.timeline();
  const QueryResult which =
      co_await connection.ask(which_store_sql, no_params, limits::store_reply_max);
  if (!which) co_return std::unexpected(failure_text(which.error()));
  problem = why_not_this_store(*which, store_id);
  if (problem) co_return std::unexpected(std::move(*problem));
  const QueryResult history =
      co_await connection.ask(server_history_sql, no_params, limits::store_reply_max);
  if (!connection.is_open()) co_return std::unexpected(failure_text(history.error()));
  const ServerHistory its = history_of(history, fence_in(*which));
  problem = lineage.why_refused(its, known);
  if (problem) co_return std::unexpected(std::move(*problem));
  co_return its.timeline != 0 ? its.timeline : known_timeline;
}

Task<std::expected<AdoptRoutes::Reply, Failure>> adopt_routes(Connection& connection,
                                                              const AdoptRoutes& verb,
                                                              const IdentitySettings& settings,
                                                              const Uuid& store_id) {
  // If this node vanished here, every reserve of every node would wait for its lock.
  const QueryResult begun = co_await connection.run(
      "BEGIN; SET LOCAL search_path = pg_catalog, pg_temp;"
      " SET LOCAL idle_in_transaction_session_timeout = '10s'",
      limits::store_reply_max);
  if (!begun) co_return std::unexpected(begun.error());
  // No reserve of the generation before can commit from here on.
  const QueryResult alone = co_await connection.ask("SELECT idem.lock_generation_exclusively()",
                                                    no_params, limits::store_reply_max);
  if (!alone) co_return std::unexpected(alone.error());
  // The names that this node makes are not found in another store: it must not get its generation.
  const auto there = co_await read_store_id(connection);
  if (!there) co_return std::unexpected(Failure{{}, there.error()});
  if (*there != store_id) {
    AdoptRoutes::Reply refused{0, another_store(store_id, *there)};
    co_return refused;
  }
  auto naming = co_await read_naming(connection);
  if (!naming) co_return std::unexpected(std::move(naming.error()));
  const auto recorded = co_await read_identity(connection);
  if (!recorded) co_return std::unexpected(Failure{{}, recorded.error()});
  const auto why_not = *recorded ? why_not_named_by(**recorded, settings)
                                 : std::optional<std::string>("it has no identity");
  if (why_not) {
    AdoptRoutes::Reply refused{0, *why_not};
    co_return refused;
  }
  const Naming before = *naming;
  std::vector<std::string> operations;
  bool is_visited = false;
  const auto visit = [&](const std::function<bool(const std::string&)>& see) {
    is_visited = true;
    (void)std::ranges::all_of(operations, see);
    return true;
  };
  AdoptRoutes asked = verb;
  AdoptRoutes::Reply reply = adopt(*naming, asked, {visit});
  if (is_visited) {
    const QueryResult found = co_await connection.ask("SELECT * FROM idem.live_operations()",
                                                      no_params, limits::store_migration_max);
    if (!found) co_return std::unexpected(found.error());
    for (int row = 0; row < found->size(); ++row) {
      operations.push_back(from_text(found->cell(row, 0)));
    }
    *naming = before;
    asked = verb;
    reply = adopt(*naming, asked, {visit});
  }
  if (*naming != before) {
    const QueryResult written = co_await write_naming(connection, *naming);
    if (!written) co_return std::unexpected(written.error());
  }
  const QueryResult committed = co_await connection.run("COMMIT", limits::store_reply_max);
  if (!committed) co_return std::unexpected(committed.error());
  co_return reply;
}

}  // namespace idem::postgres
