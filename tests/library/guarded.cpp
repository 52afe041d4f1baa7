#include "library/guarded.hpp"

#include <idem/sqlite.hpp>

#include <sqlite3.h>

namespace idem::test {

Request payment(std::string_view key, int amount) {
  return {.method = "POST",
          .target = "/payments",
          .headers = {{"Content-Type", "application/json"}, {"Idempotency-Key", std::string(key)}},
          .body = fmt::format(R"({{"amount":{}}})", amount),
          .scope = "acme"};
}

std::optional<std::string> field_of(const Response& answer, std::string_view name) {
  for (const Field& field : answer.headers) {
    if (field.name == name) return field.value;
  }
  return std::nullopt;
}

std::string code_of(const Response& answer) {
  const auto json = parse_json(answer.body);
  return json ? (*json)["code"].string : std::string{};
}

testing::AssertionResult replays(const Response& first, const Response& again) {
  if (again.status == first.status && again.body == first.body &&
      field_of(again, "Location") == field_of(first, "Location") &&
      field_of(again, "Idempotent-Replayed") == "true") {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << first.status << " " << first.body << "\n"
                                     << again.status << " " << again.body;
}

Guarded::Guarded() {
  if (GetParam().starts_with("sqlite")) {
    url_ = "sqlite:" + (dir_.path() / "service.db").string();
  } else {
    shared_ = std::make_unique<SharedStoreUrl>(GetParam());
    url_ = shared_->url();
  }
  engine_ = std::make_unique<Engine>(open());
  const auto made = engine_->transactions()->run(
      "CREATE TABLE payments (id VARCHAR(255) PRIMARY KEY, amount INTEGER NOT NULL CHECK (amount > "
      "0))");
  EXPECT_TRUE(made) << made.error();
  guard_ = std::make_unique<Guard>(*engine_, commits_only());
}

GuardOptions Guarded::commits_only() {
  return {.operation = "create-payment", .after_crash = LeasePolicy::rerun};
}

std::expected<std::unique_ptr<Store>, std::string> open_own(const std::string& path) {
  sqlite3* connection = nullptr;
  if (sqlite3_open(path.c_str(), &connection) != SQLITE_OK ||
      sqlite3_exec(connection, own_connection_setup, nullptr, nullptr, nullptr) != SQLITE_OK) {
    const std::string why = sqlite3_errmsg(connection);
    sqlite3_close(connection);
    return std::unexpected(why);
  }
  auto store = open_sqlite_on(connection, {});
  if (!store) sqlite3_close(connection);
  return store;
}

std::expected<std::unique_ptr<Store>, std::string> open_as(const std::string& kind,
                                                           const std::string& url) {
  if (kind != "sqlite_own") return open_store(url, {});
  return open_own(url.substr(url.find(':') + 1));
}

std::unique_ptr<Store> Guarded::open() {
  auto store = open_as(GetParam(), url_);
  if (!store) {
    ADD_FAILURE() << store.error();
    std::abort();
  }
  return std::move(*store);
}

Response Guarded::serve(const Request& request, const TransactionWork& work) {
  return guard_->serve(request, [&](const Request&, Execution& run) { return run.commit(work); });
}

std::int64_t Guarded::payments() {
  const auto rows = engine_->transactions()->run("SELECT count(*) FROM payments");
  if (!rows) {
    ADD_FAILURE() << rows.error();
    return -1;
  }
  return std::get<std::int64_t>(rows->at(0).at(0));
}

TransactionWork Guarded::paying(int amount, int status) {
  return [=](Transaction& tx) -> Outcome {
    const std::string id = "pay_" + to_hex(random_token().bytes);
    tx.run("INSERT INTO payments (id, amount) VALUES ($1, $2)", {id, std::int64_t{amount}});
    return Response{status, {{"Location", "/payments/" + id}}, "{\"id\":\"" + id + "\"}"};
  };
}

Record Guarded::record_of(const RecordId& id) {
  const auto found = ask_and_wait(engine_->store(), Find{id});
  if (!found || !*found) {
    ADD_FAILURE() << "no record";
    return {};
  }
  return **found;
}

}  // namespace idem::test
