#include "store/postgres/postgres_store.hpp"
#include "store/sealed_store.hpp"
#include "store_conformance/harness.hpp"

#include <idem/postgres.hpp>

#include <fmt/format.h>
#include <libpq-fe.h>

/// Which answers the SQL face stores, whatever the session has set (protocol.md §14, §17).
namespace idem::test {
namespace {

class SqlAnswers : public testing::Test {
 protected:
  SqlAnswers() : session_(database_.uri()) {
    auto store = open_postgres(database_.uri(), test_settings(), {});
    if (!store) std::abort();
    store_ = std::move(*store);
  }
  /// The three arguments that name a new attempt.
  std::string attempt(const std::string& key) {
    return session_.run(
        "SELECT format('%L, %s, %L', operation, fence, attempt) FROM"
        " idem.reserve('shop', 'pay', '" +
        key + "', 'x')");
  }
  std::string complete(const std::string& of, const std::string& rest) {
    return session_.try_run("SELECT idem.complete(" + of + ", " + rest + ")");
  }
  std::string headers(const std::string& of) {
    return session_.run("SELECT response_headers FROM idem.find(" + of.substr(0, of.find(',')) +
                        ")");
  }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
  Psql session_;
};

template <std::size_t N>
std::array<std::uint8_t, N> bytes_of(std::string text) {
  std::erase_if(text, [](char c) { return c == '-' || c == '\''; });
  std::array<std::uint8_t, N> out{};
  for (std::size_t i = 0; i < N; ++i) {
    out[i] = static_cast<std::uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return out;
}

TEST_F(SqlAnswers, S14_the_trace_beside_a_gateways_answer_is_not_for_services) {
  Reserve verb = a_reserve(1);
  verb.generation = store_->identity().generation;
  const auto reserved = ask_and_wait(*store_, verb);
  ASSERT_TRUE(reserved && is<Execute>(*reserved));
  StoredResponse stored = answer();
  stored.headers.push_back(
      {"Idem-Trace", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"});
  ASSERT_TRUE(ask_and_wait(*store_, a_complete(std::get<Execute>(*reserved), stored)));
  const auto record = ask_and_wait(*store_, Find{key(1)}).value();
  EXPECT_EQ(record->response->headers, stored.headers) << "gateways read it";
  EXPECT_EQ(session_.run("SELECT response_headers FROM idem.find('" + to_hex(key(1).bytes) + "')"),
            R"([["Content-Type", "text/plain"], ["Location", "/payments/1"]])");
}

TEST_F(SqlAnswers, S14_an_encrypted_answer_raises_and_the_rows_in_clear_are_counted) {
  const auto sealed = make_sealed(std::move(store_), test_encryption());
  const std::string of = attempt("k1");
  const auto first = of.find(", ");
  const auto second = of.find(", ", first + 2);
  const RecordId id{bytes_of<16>(of.substr(0, first))};
  const Attempt current{std::stoull(of.substr(first + 2)), {bytes_of<16>(of.substr(second + 2))}};
  const auto done = ask_and_wait(*sealed, Complete{id, current, answer(), {}});
  ASSERT_TRUE(done && done->verdict == Verdict::done);
  EXPECT_EQ(session_.try_run("SELECT idem.find(" + of.substr(0, first) + ")"), "IDM10");
  EXPECT_EQ(session_.try_run("SELECT idem.reserve('shop', 'pay', 'k1', 'x')"), "IDM10");
  EXPECT_EQ(session_.run("SELECT outcome FROM idem.reserve('shop', 'pay', 'k1', 'y')"),
            "key_misuse")
      << "no answer is in it";
  EXPECT_EQ(session_.run("SELECT count(*) FROM idem.rows_in_clear()"), "0");

  const std::string large = "convert_to(repeat('x', 5000), 'UTF8')";
  EXPECT_EQ(complete(attempt("k2"), "201, '[]', convert_to('paid', 'UTF8')"), "");
  EXPECT_EQ(complete(attempt("k3"), "201, '[]', " + large), "");
  Accept accept = an_accept(5);
  accept.as.generation = sealed->identity().generation;
  EXPECT_TRUE(ask_and_wait(*sealed, accept));
  EXPECT_EQ(session_.run("SELECT format('%s %s %s %s', scope, operation, answers, requests) FROM"
                         " idem.rows_in_clear()"),
            "shop pay 2 0");
  const TestRole other(database_.uri());
  session_.run("SELECT idem.restrict_to_scope('" + other.name() + "', 'another')");
  EXPECT_EQ(Psql(other.uri()).run("SELECT count(*) FROM idem.rows_in_clear()"), "0");
  EXPECT_EQ(Psql(other.uri()).try_run("SELECT * FROM idem.rows_in_clear_of('shop')"), "42501");
  const TestRole shop(database_.uri());
  session_.run("SELECT idem.restrict_to_scope('" + shop.name() + "', 'shop')");
  EXPECT_EQ(Psql(shop.uri()).run("SELECT answers FROM idem.rows_in_clear()"), "2");
}

TEST_F(SqlAnswers, S17_no_session_changes_what_a_literal_of_a_function_means) {
  for (const std::string setting : {"on", "off"}) {
    session_.run("SET standard_conforming_strings = " + setting +
                 "; SET escape_string_warning = on");
    const std::string current = attempt("k" + setting);
    const std::string body = "convert_to('paid', 'UTF8')";
    EXPECT_EQ(complete(current,
                       "201, '[[\"Connection\", \"a, X-B\"], [\"X-A\", \"1\"],"
                       " [\"X-B\", \"2\"]]', " +
                           body),
              "");
    EXPECT_EQ(headers(current), "[[\"X-A\", \"1\"]]") << setting;
    const std::string again =
        "SELECT outcome || convert_from(response_body, 'UTF8') FROM"
        " idem.reserve('shop', 'pay', 'k" +
        setting + "', 'x')";
    EXPECT_EQ(session_.run(again), "replaypaid");
    const std::string sent = attempt("sent" + setting);
    EXPECT_EQ(session_.try_run("SELECT idem.enqueue(" + sent + ", 'd', 't', '{}')"), "");
    for (const std::string verb : {"advance({}, 'half')", "renew({})", "mark_unknown({})"}) {
      EXPECT_EQ(session_.try_run("SELECT idem." + fmt::format(fmt::runtime(verb), sent)), "")
          << verb << setting;
    }
  }
  // Records of one setting are those of the other, and of a gateway.
  EXPECT_EQ(session_.run("SELECT outcome FROM idem.reserve('shop', 'pay', 'kon', 'x')"), "replay");
}

TEST_F(SqlAnswers, S14_no_value_with_a_control_character_is_stored) {
  const std::string current = attempt("k");
  for (int byte = 1; byte < 0x20; ++byte) {
    if (byte == '\t') continue;
    const std::string value = fmt::format(
        "jsonb_build_array(jsonb_build_array('X-A', 'a' ||"
        " chr({}) || 'b'))",
        byte);
    EXPECT_EQ(complete(current, "201, " + value), "IDM05") << byte;
    const std::string head = fmt::format(
        "E'\\\\x01c90001' || idem.framed('X-A') ||"
        " idem.framed(E'\\\\x61{:02x}62')",
        byte);
    EXPECT_EQ(session_.try_run("SELECT idem.try_owner('complete', " + current + ", NULL, NULL, " +
                               head + ", '', '', NULL, NULL, NULL)"),
              "IDM05")
        << byte;
  }
  EXPECT_EQ(complete(current, "201, jsonb_build_array(jsonb_build_array('X-A', chr(127)))"),
            "IDM05");
  EXPECT_EQ(complete(current,
                     "201, jsonb_build_array(jsonb_build_array('X-A', e' \\ta\\tcaf\\u00e9 ~ '))"),
            "");
  EXPECT_EQ(headers(current), "[[\"X-A\", \"a\\tcaf\xc3\xa9 ~\"]]");
}

TEST_F(SqlAnswers, S14_an_answer_without_a_body_has_none) {
  const std::string current = attempt("k");
  for (const std::string status : {"204", "205", "304"}) {
    EXPECT_EQ(complete(current, status + ", '[]', 'body'"), "IDM05") << status;
  }
  EXPECT_EQ(complete(current, "204, '[]', ''"), "");
}

TEST_F(SqlAnswers, S14_a_services_own_connection_stores_the_same_fields) {
  Reserve verb = a_reserve(1);
  verb.generation = store_->identity().generation;
  const auto run = std::get<Execute>(ask_and_wait(*store_, verb).value());
  pg_conn* const connection = PQconnectdb(database_.uri().c_str());
  StoredResponse response = answer(201, "paid");
  const auto complete_with = [&](const Field& field) {
    response.headers = {{"X-Of-It", "1"}, {"Connection", "close, x-of-it"}, field};
    PQclear(PQexec(connection, "BEGIN"));
    const auto done = complete_on(connection, run.id, run.attempt, response, "");
    PQclear(PQexec(connection, done ? "COMMIT" : "ROLLBACK"));
    return done ? std::string() : done.error().sqlstate;
  };
  EXPECT_EQ(complete_with({"X-A", "a\x7f"}), "IDM05");
  EXPECT_EQ(complete_with({"X-A", "a\x01z"}), "IDM05");
  EXPECT_EQ(complete_with({"X-Kept", " yes\t"}), "");
  PQfinish(connection);
  const auto record = ask_and_wait(*store_, Find{key(1)});
  EXPECT_EQ(record->value().response->headers, (std::vector<Field>{{"X-Kept", "yes"}}));
}

}  // namespace
}  // namespace idem::test
