#include "store/postgres/migrations.hpp"
#include "store_conformance/postgres/asking.hpp"
#include "store_conformance/upgrading.hpp"

#include <future>

/// Schemas of older versions, with work in them and beside it.
namespace idem::test {
namespace {

/// Makes the newest schema that of version 2, whose functions work.
constexpr const char* back_to_version_2 = R"(
  ALTER TABLE idem.lease_due_batches RENAME TO lease_looks;
  ALTER INDEX idem.lease_due_batches_due RENAME TO lease_looks_due;
  ALTER TABLE idem.expiry_due_batches RENAME TO expiry_looks;
  ALTER INDEX idem.expiry_due_batches_due RENAME TO expiry_looks_due;
  ALTER TABLE idem.parked_records RENAME TO standing;
  ALTER INDEX idem.parked_records_pkey RENAME TO standing_pkey;
  ALTER INDEX idem.parked_records_in_order RENAME TO standing_in_order;
  ALTER INDEX idem.parked_records_by_id RENAME TO standing_by_id;
  ALTER TABLE idem.outbox RENAME COLUMN no_call_in_flight_since TO quiet_since;
  ALTER TABLE idem.flows RENAME COLUMN no_call_in_flight_since TO quiet_since;
  ALTER TABLE idem.outbox RENAME COLUMN claim TO fence;
  CREATE OR REPLACE FUNCTION idem.has_sent_nothing(s idem.slots) RETURNS boolean LANGUAGE sql
    IMMUTABLE RETURN NOT s.dispatched;
  CREATE OR REPLACE FUNCTION idem.has_damaged_evidence(of uuid) RETURNS boolean LANGUAGE sql
    STABLE RETURN false;
  ALTER TABLE idem.slots DROP COLUMN unsent_token;
  ALTER TABLE idem.evidence DROP COLUMN checksum;
  DROP TABLE idem.journal CASCADE;
  DROP INDEX idem.outbox_of_record;
  DO $$
  DECLARE
    one record;
  BEGIN
    FOR one IN SELECT a.attrelid::regclass AS of, a.attname FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'idem'::regnamespace AND a.attcompression = 'l' LOOP
      EXECUTE format('ALTER TABLE %s ALTER %I SET COMPRESSION default', one.of, one.attname);
    END LOOP;
  END $$;
  DELETE FROM idem.schema_version WHERE version > 2;
  UPDATE idem.schema_functions SET checksum = 'older', program = '0.0.9';
  DO $$
  DECLARE
    f record;
    old text;
  BEGIN
    FOR f IN SELECT p.oid, p.proname, pg_get_functiondef(p.oid) AS now FROM pg_proc p
        WHERE p.pronamespace = 'idem'::regnamespace AND p.prosqlbody IS NULL LOOP
      old := replace(f.now, 'lease_due_batches', 'lease_looks');
      old := replace(old, 'expiry_due_batches', 'expiry_looks');
      old := replace(old, 'parked_records', 'standing');
      old := replace(old, 'no_call_in_flight_since', 'quiet_since');
      old := regexp_replace(old, 's\.unsent_token := [^;]*;', '', 'g');
      old := replace(old, ', unsent_token = s.unsent_token', '');
      old := regexp_replace(old, ',\s+(s\.)?unsent_token\)', ')', 'g');
      old := regexp_replace(old, ',\s+CASE WHEN NOT [a-z_.[\]]+ THEN'
                                 ' (tokens\[a\.number\]|asked_token) END', '');
      IF f.proname = 'append_evidence' THEN
        old := regexp_replace(replace(old, ', checksum)', ')'),
                              ',\s+idem\.evidence_checksum\([^)]*\)', '');
      END IF;
      IF f.proname IN ('claim_messages', 'note_sending', 'note_delivery') THEN
        old := replace(regexp_replace(old, '\mclaim\M', 'fence', 'g'), 'of_claim', 'of_fence');
        EXECUTE 'DROP FUNCTION ' || f.oid::regprocedure;
      END IF;
      IF old <> f.now THEN EXECUTE old; END IF;
    END LOOP;
  END $$)";

/// The tables that all stores have, and the types; days have tables of their own.
const std::string all_tables =
    "SELECT string_agg(line, E'\\n' ORDER BY line COLLATE \"C\") FROM ("
    "SELECT concat_ws(' ', c.relname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum),"
    "  a.attname, format_type(a.atttypid, a.atttypmod),"
    "  a.attnotnull, a.attstorage, a.attcompression, a.attidentity, pg_get_expr(d.adbin, "
    "d.adrelid)) FROM pg_class c"
    "  JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND"
    "  d.adnum = a.attnum WHERE c.relnamespace = 'idem'::regnamespace AND c.relkind IN "
    "('r','p','c')"
    "  AND c.relname !~ '^answers_[0-9]' AND a.attnum > 0 AND NOT a.attisdropped"
    " UNION ALL SELECT concat_ws(' ', c.relkind, c.relname, c.relreplident, c.reloptions::text,"
    "  obj_description(c.oid, 'pg_class'), pg_get_indexdef(i.indexrelid)) FROM pg_class c"
    "  LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relnamespace = 'idem'::regnamespace"
    "  AND c.relkind IN ('r', 'p', 'c', 'i', 'S') AND c.relname !~ '^answers_[0-9]'"
    " UNION ALL SELECT concat_ws(' ', k.conname, pg_get_constraintdef(k.oid)) FROM pg_constraint k"
    "  WHERE k.connamespace = 'idem'::regnamespace AND k.conname !~ '^answers_[0-9]') "
    "all_lines(line)";
const std::string all_functions =
    "SELECT string_agg(pg_get_functiondef(p.oid), E'\\n' ORDER BY p.oid::regprocedure::text"
    " COLLATE \"C\") FROM pg_proc p WHERE p.pronamespace = 'idem'::regnamespace";

class PostgresUpgrade : public testing::Test {
 protected:
  /// Empty: the store was upgraded.
  std::string upgrade() {
    const auto store = open_postgres(database_.uri(), test_settings(), {.migrate = true});
    return store ? std::string() : store.error().detail;
  }
  static std::string reserving(const std::string& scope, const std::string& key) {
    return fmt::format("SELECT outcome FROM idem.reserve('{}', 'pay', '{}', 'bytes')", scope, key);
  }

  TestDatabase database_;
  Psql session_{database_.uri()};
};

TEST_F(PostgresUpgrade, S02_an_older_store_with_work_in_it_becomes_what_a_new_one_is) {
  const TestDatabase fresh;
  Psql of_fresh(fresh.uri());
  open_by_uri(fresh.uri());
  const TestDatabase second;
  Psql of_second(second.uri());
  of_second.run("SET search_path = pg_catalog, pg_temp");
  for (const Migration& file : postgres::migrations().subspan(0, 2)) {
    of_second.run(std::string(file.sql));
  }
  const TestRole role(database_.uri());
  WorkLeft left;
  {
    const auto store = open_by_uri(database_.uri());
    left = leave_work(*store);
    session_.run("SELECT idem.restrict_to_scope('" + role.name() + "', 'shop')");
  }
  session_.run(back_to_version_2);
  ASSERT_EQ(session_.run(all_tables), of_second.run(all_tables)) << "it has the form of version 2";
  EXPECT_EQ(session_.run("SELECT fence FROM idem.claim_messages('d', 1, 0, 3600000, 0)"), "2");
  const auto refused = open_postgres(database_.uri(), test_settings(), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("--migrate"), std::string::npos);

  ASSERT_EQ(upgrade(), "");
  EXPECT_EQ(session_.run(all_tables), of_fresh.run(all_tables));
  EXPECT_EQ(session_.run(all_functions), of_fresh.run(all_functions));
  EXPECT_EQ(session_.run("SELECT DISTINCT a.attcompression FROM pg_attribute a JOIN pg_class c"
                         " ON c.oid = a.attrelid WHERE c.relname ~ '^answers_[0-9]'"
                         " AND a.attname IN ('head', 'body')"),
            "l")
      << "the days that there were";
  expect_work_ends(*open_by_uri(database_.uri()), left);
  Psql service(role.uri());
  EXPECT_EQ(service.run(reserving("shop", "k")), "execute");
  EXPECT_NE(service.try_run(reserving("globex", "k")), "");
  EXPECT_EQ(session_.run("SELECT count(*) FROM idem.tables_with_policies() t WHERE NOT EXISTS"
                         " (SELECT FROM pg_policy p WHERE p.polrelid = t AND NOT p.polpermissive)"),
            "0");
}

// The service writes in the order that docs/sql-face.md shows, the reverse of the upgrade's.
TEST_F(PostgresUpgrade, S17_it_waits_for_a_services_transaction_while_others_reserve) {
  const auto older = open_by_uri(database_.uri());
  run(*older, 1);
  session_.run(back_to_version_2);
  Psql service(database_.uri());
  const std::string attempt = service.run(
      "SELECT format('%L, %s, %L', operation, fence, attempt)"
      " FROM idem.reserve('shop', 'pay', 'k', 'bytes')");
  service.run("BEGIN; SELECT idem.enqueue(" + attempt + ", 'd', 'paid', '{}')");

  auto upgraded = std::async(std::launch::async, [this] { return upgrade(); });
  const auto wait_for_a_try = [&] {
    while (session_.run("SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
                        " WHERE NOT l.granted AND l.mode = 'AccessExclusiveLock'"
                        " AND c.relnamespace = 'idem'::regnamespace") == "0") {
      if (upgraded.wait_for(1ms) == std::future_status::ready) return;
    }
  };
  for (int number = 2; number < 6; ++number) {
    wait_for_a_try();
    run(*older, number);
  }
  wait_for_a_try();
  EXPECT_EQ(service.try_run("SELECT idem.complete(" + attempt + ", 201)"), "");
  EXPECT_EQ(service.try_run("COMMIT"), "");
  EXPECT_EQ(upgraded.get(), "");
  EXPECT_EQ(session_.run("SELECT destination || state FROM idem.outbox"), "dwaiting");
  EXPECT_EQ(session_.run(reserving("shop", "k")), "replay");
  EXPECT_EQ(session_.run("SELECT count(*) FROM idem.slots"), "6");
}

// With the identity, which waits for reserves that are under way, changed in the same start.
TEST_F(PostgresUpgrade, S02_it_adopts_a_new_secret_while_others_reserve) {
  const auto older = open_by_uri(database_.uri());
  session_.run(back_to_version_2);
  std::atomic<bool> is_over{false};
  std::thread others([&] {
    for (int number = 1; !is_over; ++number) {
      (void)ask_and_wait(*older, a_reserve_in(*older, number));
    }
  });
  IdentitySettings settings = test_settings();
  settings.secrets.emplace_back();
  const auto store = open_postgres(database_.uri(), settings, {.migrate = true});
  is_over = true;
  others.join();
  EXPECT_TRUE(store) << store.error().detail;
}

}  // namespace
}  // namespace idem::test
