#include "store/mysql/opening.hpp"

#include "core/naming/adopt_routes.hpp"
#include "core/naming/copied_identity.hpp"
#include "core/naming/identity_settling.hpp"
#include "store/mysql/migrations.hpp"
#include "store/mysql/schema.hpp"
#include "store/mysql/sql_text.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include <fmt/format.h>
#include <mysqld_error.h>

#include <algorithm>

namespace idem::mysql {
namespace {

using Problem = std::optional<std::string>;
using Found = std::expected<std::optional<StoreIdentity>, Failure>;

/// One lock for each database; the name of a lock is of the whole server, and at most 64 bytes.
constexpr const char* lock_starts =
    "SELECT GET_LOCK(CONCAT('idem:', LEFT(SHA1(DATABASE()), 40)), 30)";
constexpr const char* unlock_starts =
    "DO RELEASE_LOCK(CONCAT('idem:', LEFT(SHA1(DATABASE()), 40)))";

/// A record that counts, in SQL as transitions::is_live() does.
constexpr const char* is_live =
    "(state IN (1, 2, 5) OR (state = 4 AND (expires_at IS NULL OR expires_at > @idem_now))"
    " OR (state IN (3, 6) AND (tombstone_until IS NULL OR tombstone_until > @idem_now)))";

/// `how`: the lock of the row.
Task<Found> read_identity(Connection& connection, std::string_view how) {
  auto asking = connection.run(fmt::format("SELECT value FROM idem_identity WHERE one = 1{}", how),
                               limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->front().size() == 0) co_return std::nullopt;
  auto identity = parse_identity_value(answer->front().cell(0, 0));
  if (!identity) {
    Failure failure{ER_CRASHED_ON_USAGE, std::move(identity.error())};
    co_return std::unexpected(std::move(failure));
  }
  co_return std::optional(std::move(*identity));
}

/// Of the column by_operation: whether the operation is part of a record's name; 2: nobody may name
/// records here.
std::uint64_t names_of(const RecordedIdentity& recorded) {
  if (why_marked(recorded.key_scope)) return 2;
  return recorded.key_scope == "operation" ? 1 : 0;
}

/// For the functions of the schema, which know a key by one name.
std::string former_names_of(const Naming& naming) {
  std::string names("\n");
  for (const RouteName& route : naming.routes) {
    if (route.formerly.empty()) continue;
    names += route.name + '\n';
    for (const std::string& name : route.formerly) names += name + '\n';
  }
  return names;
}

Task<std::expected<void, Failure>> write_identity(Connection& connection,
                                                  const StoreIdentity& identity) {
  std::string sql;
  SqlText(sql)
      .sql(
          "INSERT INTO idem_identity (one, store_id, generation, own_secret, by_operation, is_own,"
          " former_names, value) VALUES (1, ")
      .hex(identity.store_id)
      .sql(", ")
      .number(identity.recorded.generation)
      .sql(", ")
      .hex(identity.recorded.own)
      .sql(", ")
      .number(names_of(identity.recorded))
      .sql(", ")
      .boolean(identity.is_own())
      .sql(", ")
      .bytes(former_names_of(identity.naming))
      .sql(", ")
      .bytes(to_identity_value(identity))
      .sql(
          ") ON DUPLICATE KEY UPDATE store_id = VALUES(store_id), generation = VALUES(generation),"
          " own_secret = VALUES(own_secret), by_operation = VALUES(by_operation),"
          " is_own = VALUES(is_own), former_names = VALUES(former_names),"
          " value = VALUES(value)");
  auto writing = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult written = co_await std::move(writing);
  if (!written) co_return std::unexpected(written.error());
  co_return std::expected<void, Failure>();
}

Task<std::expected<GenerationCensus, Failure>> take_census(Connection& connection) {
  GenerationCensus census;
  auto asking = connection.run(fmt::format("SET @idem_now = idem_now();"
                                           "SELECT DISTINCT generation FROM idem_slots WHERE {}",
                                           is_live),
                               limits::store_migration_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(answer.error());
  const Rows& rows = answer->front();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    census.empty = false;
    census.generations.insert(to_unsigned(rows.cell(row, 0)));
  }
  co_return census;
}

/// Gives a new store a first generation that no other store has: if the tables are dropped and made
/// again under open connections, each reserve of a node of the former store is refused in its own
/// transaction. Below 2^52, so that AdoptRoutes can add to it and every reader of JSON can hold it.
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

struct SettledIdentity {
  Identity identity;
  StoreIdentity recorded;
  bool is_changed = false;
  bool is_new = false;
};

Task<std::expected<SettledIdentity, std::string>> settle_once(Connection& connection,
                                                              const IdentitySettings& settings,
                                                              const WhichStore& which,
                                                              std::string_view lock) {
  auto reading = read_identity(connection, lock);
  const Found found = co_await std::move(reading);
  if (!found) co_return std::unexpected(failure_text(found.error()));
  SettledIdentity settled;
  if (*found) settled.recorded = **found;
  std::optional<RecordedIdentity> before;
  if (*found) before = settled.recorded.recorded;
  auto recorded = before;
  // All records are read only if that can matter.
  bool is_asked = false;
  const auto note = [&] {
    is_asked = true;
    return GenerationCensus{};
  };
  auto identity = settle_identity(recorded, settings, note, which);
  if (is_asked) {
    auto counting = take_census(connection);
    const auto census = co_await std::move(counting);
    if (!census) co_return std::unexpected(failure_text(census.error()));
    recorded = before;
    identity = settle_identity(recorded, settings, [&] { return *census; }, which);
  }
  if (!identity) co_return std::unexpected(std::move(identity.error()));
  settled.is_new = !before;
  if (settled.is_new) {
    if (!which.copied) begin_at_random(*identity, *recorded);
    random_bytes(settled.recorded.store_id);
  }
  settled.is_changed = recorded != before;
  settled.recorded.recorded = *recorded;
  settled.recorded.naming.generation = recorded->generation;
  settled.recorded.naming.by_operation = recorded->key_scope == "operation";
  settled.is_changed |= settle_naming(which, settled.recorded.naming);
  settled.identity = std::move(*identity);
  co_return settled;
}

/// A running node may have reserved, or adopted a route table, since the identity was read. So it
/// is read again under a lock that every reserve shares until its commit.
Task<std::expected<SettledIdentity, std::string>> settle_alone(Connection& connection,
                                                               const IdentitySettings& settings,
                                                               const WhichStore& which) {
  auto beginning = connection.run("START TRANSACTION", limits::store_reply_max);
  const QueryResult begun = co_await std::move(beginning);
  if (!begun) co_return std::unexpected(failure_text(begun.error()));
  auto settling = settle_once(connection, settings, which, " FOR UPDATE");
  auto settled = co_await std::move(settling);
  if (!settled) co_return settled;
  if (settled->is_changed) {
    auto writing = write_identity(connection, settled->recorded);
    const auto written = co_await std::move(writing);
    if (!written) co_return std::unexpected(failure_text(written.error()));
  }
  auto filling = connection.run(
      "INSERT INTO idem_fence (one, highest) VALUES (1, 0) ON DUPLICATE KEY UPDATE highest ="
      " highest; COMMIT",
      limits::store_reply_max);
  const QueryResult filled = co_await std::move(filling);
  if (!filled) co_return std::unexpected(failure_text(filled.error()));
  co_return settled;
}

Task<std::expected<SettledIdentity, std::string>> settle(Connection& connection,
                                                         const IdentitySettings& settings,
                                                         const WhichStore& which) {
  auto settling = settle_once(connection, settings, which, "");
  auto settled = co_await std::move(settling);
  if (!settled || !settled->is_changed) co_return settled;
  // Reserves queue behind the wait for the lock, which is therefore short, and repeated.
  for (int turn = 0; turn < limits::migration_lock_rounds; ++turn) {
    auto changing = settle_alone(connection, settings, which);
    settled = co_await std::move(changing);
    if (settled || !connection.is_open()) co_return settled;
    auto undoing = connection.run("ROLLBACK", limits::store_reply_max);
    const QueryResult undone = co_await std::move(undoing);
    if (!undone) co_return std::unexpected(failure_text(undone.error()));
    const bool is_busy = settled.error().find("(1205)") != std::string::npos ||
                         settled.error().find("(1213)") != std::string::npos;
    if (!is_busy) co_return settled;
  }
  co_return settled;
}

/// None: there is no store yet.
Task<std::expected<std::optional<StoreId>, std::string>> find_store_id(Connection& connection,
                                                                       const SchemaFound& found) {
  if (found.version == 0) co_return std::nullopt;
  auto reading = read_identity(connection, "");
  const Found identity = co_await std::move(reading);
  if (!identity) co_return std::unexpected(failure_text(identity.error()));
  if (!*identity) co_return std::nullopt;
  co_return std::optional((*identity)->store_id);
}

Task<std::expected<Opened, std::string>> open_locked(Connection& connection,
                                                     const IdentitySettings& settings,
                                                     const MysqlOptions& options,
                                                     const ServerCheck& server) {
  auto looking = find_schema(connection);
  const auto found = co_await std::move(looking);
  if (!found) co_return std::unexpected(found.error());
  Problem problem = why_unusable(*found, options.migrate);
  if (problem) co_return std::unexpected(std::move(*problem));
  auto finding = find_store_id(connection, *found);
  const auto there = co_await std::move(finding);
  if (!there) co_return std::unexpected(there.error());
  // Before anything is made.
  problem = why_not(options.which, *there);
  if (problem) co_return std::unexpected(std::move(*problem));
  auto bringing = bring_schema(connection, *found, server.is_mariadb);
  problem = co_await std::move(bringing);
  if (problem) co_return std::unexpected(std::move(*problem));
  Opened opened;
  opened.server = server;
  opened.is_new = !there->has_value();
  if (options.as_recorded && there->has_value()) {
    opened.store_id = **there;
    co_return opened;
  }
  auto settling = settle(connection, settings, options.which);
  auto settled = co_await std::move(settling);
  if (!settled) co_return std::unexpected(std::move(settled.error()));
  opened.store_id = settled->recorded.store_id;
  opened.identity = std::move(settled->identity);
  co_return opened;
}

}  // namespace

Task<std::expected<Opened, Refusal>> open_database(Connection& connection,
                                                   const IdentitySettings& settings,
                                                   const MysqlOptions& options) {
  const auto refused = [](std::string why) { return std::unexpected(Refusal{std::move(why)}); };
  auto checking = check_server(connection);
  const auto server = co_await std::move(checking);
  if (!server) co_return std::unexpected(server.error());
  auto locking = connection.run(lock_starts, limits::store_migration_max);
  const QueryResult locked = co_await std::move(locking);
  if (!locked) co_return refused(failure_text(locked.error()));
  if (locked->front().cell(0, 0) != "1") {
    co_return refused("another start works on the same database");
  }
  auto opening = open_locked(connection, settings, options, *server);
  auto opened = co_await std::move(opening);
  if (!connection.is_open()) {
    if (!opened) co_return refused(std::move(opened.error()));
    co_return std::move(*opened);
  }
  auto unlocking =
      connection.run(std::string("ROLLBACK; ") + unlock_starts, limits::store_reply_max);
  const QueryResult unlocked = co_await std::move(unlocking);
  if (!opened) co_return refused(std::move(opened.error()));
  if (!unlocked) co_return refused(failure_text(unlocked.error()));
  co_return std::move(*opened);
}

Task<std::expected<ServerCheck, std::string>> check_again(Connection& connection,
                                                          const StoreId& store_id,
                                                          std::optional<KnownAttempt> known) {
  auto checking = check_server(connection);
  const auto server = co_await std::move(checking);
  if (!server) co_return std::unexpected(server.error().why);
  auto looking = find_schema(connection);
  const auto schema = co_await std::move(looking);
  if (!schema) co_return std::unexpected(schema.error());
  auto finding = find_store_id(connection, *schema);
  const auto there = co_await std::move(finding);
  if (!there) co_return std::unexpected(there.error());
  if (!*there) co_return std::unexpected(std::string("it has no identity"));
  if (**there != store_id) co_return std::unexpected(another_store(store_id, **there));
  const bool is_same =
      schema->version == migrations().back().version && schema->checksum == function_set().checksum;
  if (!is_same) {
    co_return std::unexpected(
        std::string("its schema was changed by another version of the program: start that version "
                    "here, too"));
  }
  if (!known) co_return *server;
  std::string sql;
  SqlText(sql)
      .sql("SELECT (SELECT fence FROM idem_slots WHERE id = ")
      .hex(known->id.bytes)
      .sql("), (SELECT highest FROM idem_fence WHERE one = 1)");
  auto asking = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(failure_text(answer.error()));
  const Rows& fences = answer->front();
  const auto has = std::max(to_unsigned(fences.cell(0, 0)), to_unsigned(fences.cell(0, 1)));
  if (has < known->fence) {
    co_return std::unexpected(why_lost(*known));
  }
  co_return *server;
}

Task<std::expected<AdoptRoutes::Reply, Failure>> adopt_routes(Connection& connection,
                                                              const AdoptRoutes& verb,
                                                              const IdentitySettings& settings,
                                                              const StoreId& store_id) {
  auto beginning = connection.run("START TRANSACTION", limits::store_reply_max);
  const QueryResult begun = co_await std::move(beginning);
  if (!begun) co_return std::unexpected(begun.error());
  // No reserve of the generation before can commit from here on.
  auto reading = read_identity(connection, " FOR UPDATE");
  Found found = co_await std::move(reading);
  if (!found) co_return std::unexpected(std::move(found.error()));
  // The names that this node makes are not found in another store: it must not get its generation.
  AdoptRoutes::Reply reply;
  if (!*found) reply.why_not = "it has no identity";
  if (*found && (*found)->store_id != store_id) {
    reply.why_not = another_store(store_id, (*found)->store_id);
  }
  if (reply.why_not.empty()) {
    reply.why_not = why_not_named_by((*found)->recorded, settings).value_or(std::string());
  }
  if (!reply.why_not.empty()) co_return reply;
  Naming naming = (*found)->naming;
  std::vector<std::string> operations;
  bool is_visited = false;
  const auto visit = [&](const std::function<bool(const std::string&)>& see) {
    is_visited = true;
    (void)std::ranges::all_of(operations, see);
    return true;
  };
  AdoptRoutes asked = verb;
  reply = adopt(naming, asked, {visit});
  if (is_visited) {
    auto asking = connection.run(fmt::format("SET @idem_now = idem_now();"
                                             "SELECT DISTINCT operation FROM idem_slots WHERE {}",
                                             is_live),
                                 limits::store_migration_max);
    const QueryResult answer = co_await std::move(asking);
    if (!answer) co_return std::unexpected(answer.error());
    const Rows& rows = answer->front();
    for (std::size_t row = 0; row < rows.size(); ++row) operations.emplace_back(rows.cell(row, 0));
    naming = (*found)->naming;
    asked = verb;
    reply = adopt(naming, asked, {visit});
  }
  if (naming != (*found)->naming) {
    StoreIdentity next = **found;
    next.naming = naming;
    next.recorded.generation = naming.generation;
    auto writing = write_identity(connection, next);
    const auto written = co_await std::move(writing);
    if (!written) co_return std::unexpected(written.error());
  }
  auto ending = connection.run("COMMIT", limits::store_reply_max);
  const QueryResult committed = co_await std::move(ending);
  if (!committed) co_return std::unexpected(commit_failed(connection, committed.error()));
  co_return reply;
}

}  // namespace idem::mysql
