#include "store_conformance/postgres/asking.hpp"

/// The journal's table against the roles of services, whatever rights they have.
namespace idem::test {
namespace {

class JournalRoles : public testing::Test {
 protected:
  JournalRoles() : store_(open_by_uri(database_.uri())) {
    EXPECT_TRUE(ask_and_wait(*store_, AppendLine{"audit", 0, "theirs"}));
    EXPECT_TRUE(ask_and_wait(*store_, AppendLine{"jobs", 0, "theirs"}));
  }
  std::string all() {
    return owner_.run("SELECT string_agg(j::text, ';' ORDER BY name, seq) FROM idem.journal j");
  }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  Psql owner_{database_.uri()};
};

constexpr const char* attempts[] = {
    "INSERT INTO idem.journal VALUES ('audit', 2, now(), 'x', 1, 'x')",
    "UPDATE idem.journal SET line = 'forged'",
    "DELETE FROM idem.journal",
    "TRUNCATE idem.journal",
    "SELECT idem.append_line('audit', 1, 'forged', NULL)",
    "SELECT idem.append_line('audit', 0, 'forged', NULL)",
    "SELECT idem.drop_journal('jobs', 1)",
};

TEST_F(JournalRoles, S17_a_role_with_all_rights_on_all_tables_neither_sees_nor_writes_a_line) {
  const TestRole service(database_.uri());
  owner_.run(fmt::format(
      "GRANT USAGE ON SCHEMA idem TO {0}; GRANT ALL ON ALL TABLES IN SCHEMA idem TO {0};"
      " GRANT ALL ON ALL SEQUENCES IN SCHEMA idem TO {0}",
      service.name()));
  const std::string before = all();
  ASSERT_NE(before, "");
  Psql session(service.uri());
  EXPECT_EQ(session.run("SELECT count(*) FROM idem.journal"), "0");
  // An audit without a line would be whole.
  EXPECT_EQ(session.try_run("SELECT * FROM idem.read_lines('audit', 0, 10, 1000)"), "42501");
  EXPECT_EQ(session.try_run("SELECT * FROM idem.list_journals('', '', 10)"), "42501");
  for (const char* const attempt : attempts) (void)session.try_run(attempt);
  EXPECT_EQ(all(), before);
  EXPECT_EQ(session.run("SELECT outcome FROM idem.reserve('shop', 'pay', 'k', 'x')"), "execute");
  // It also runs a store of its own, as services with the library do.
  const auto own = open_postgres(service.uri(), test_settings(), {});
  ASSERT_TRUE(own);
  const auto unread = ask_and_wait(**own, ReadLines{"audit"});
  ASSERT_FALSE(unread);
  EXPECT_NE(unread.error().detail.find("row-level security hides"), std::string::npos)
      << unread.error().detail;
}

TEST_F(JournalRoles, S17_nor_does_a_restricted_role) {
  const TestRole service(database_.uri());
  owner_.run("SELECT idem.restrict_to_scope('" + service.name() + "', 'shop')");
  const std::string before = all();
  Psql session(service.uri());
  EXPECT_EQ(session.try_run("SELECT count(*) FROM idem.journal"), "42501");
  EXPECT_EQ(session.try_run("SELECT * FROM idem.read_lines('audit', 0, 10, 1000)"), "42501");
  EXPECT_EQ(session.try_run("SELECT * FROM idem.list_journals('', '', 10)"), "42501");
  for (const char* const attempt : attempts) EXPECT_EQ(session.try_run(attempt), "42501");
  EXPECT_EQ(all(), before);
  EXPECT_TRUE(ask_and_wait(*store_, AppendLine{"audit", 1, "goes on"})->appended);
  owner_.run("SELECT idem.lift_restriction('" + service.name() + "')");
  EXPECT_EQ(owner_.run("SELECT relrowsecurity FROM pg_class WHERE oid = 'idem.journal'::regclass"),
            "t");
}

TEST_F(JournalRoles, S19_even_the_owner_changes_no_line_by_mistake) {
  const std::string before = all();
  EXPECT_EQ(owner_.try_run("UPDATE idem.journal SET line = 'x'"), "IDM09");
  EXPECT_EQ(owner_.try_run("DELETE FROM idem.journal WHERE name = 'audit'"), "IDM09");
  EXPECT_EQ(owner_.try_run("TRUNCATE idem.journal"), "IDM09");
  EXPECT_EQ(all(), before);
  owner_.run("DELETE FROM idem.journal WHERE name = 'jobs'");
}

TEST_F(JournalRoles, S22_a_line_that_was_changed_is_shown_as_damaged) {
  owner_.run("SET session_replication_role = replica; UPDATE idem.journal SET line = 'forged'");
  const auto read = ask_and_wait(*store_, ReadLines{"audit"});
  ASSERT_TRUE(read && read->lines.size() == 1);
  EXPECT_TRUE(read->lines[0].is_damaged);
  EXPECT_EQ(read->lines[0].bytes, "forged");
}

}  // namespace
}  // namespace idem::test
