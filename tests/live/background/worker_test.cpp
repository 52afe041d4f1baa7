#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/postgres.hpp"
#include "support/shared_store.hpp"

/// `idem worker` delivers what services in any language enqueued by SQL, and `idem outbox` and
/// `idem dlq` show and settle what it could not deliver.
namespace idem::test {
namespace {

class Worker : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    secret_ = (dir_.path() / "secret").string();
    std::ofstream(secret_) << "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
    std::filesystem::permissions(secret_, std::filesystem::perms::owner_read);
    provider_ = std::make_unique<Provider>(
        "127.0.0.1:0", std::vector<std::string>{"--inbox-secret-file", secret_});
    // A worker makes no store.
    ASSERT_EQ(run_program(built_program("idem"), {"migrate", "--store", store_.url()}).exit_code,
              0);
    start();
  }

  std::string config(const std::string& deduplicates = "24h", int attempts = 2,
                     const std::string& more = {}) {
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << fmt::format(
        "store: {}\nadmin: 127.0.0.1:0\ndestinations:\n  - name: receipts\n"
        "    url: \"http://{}/inbox\"\n    secret_files: [{}]\n    deduplicates: {}\n"
        "    timeout: 2s\n    attempts: {}\n    source: /shop\n{}",
        store_.url(), provider_->address(), secret_, deduplicates, attempts, more);
    return file;
  }
  void start(const std::string& deduplicates = "24h", int attempts = 2,
             const std::string& more = {}) {
    worker_ = std::make_unique<Process>(
        ProcessOptions{.program = built_program("idem"),
                       .arguments = {"worker", "--config", config(deduplicates, attempts, more)}});
    admin_ = worker_->wait_for_address("admin");
    ASSERT_FALSE(admin_.empty()) << worker_->output();
  }

  /// As a service does in its own transaction; the message's id without dashes.
  std::string send(const std::string& payload, const std::string& aggregate = "") {
    Psql sql(store_.database());
    const std::string key = fmt::format("key-{}", ++keys_);
    return sql.run(fmt::format(
        "BEGIN;"
        " CREATE TEMP TABLE mine AS SELECT * FROM idem.reserve('acme', 'pay', '{0}', 'bytes');"
        " CREATE TEMP TABLE sent AS SELECT idem.enqueue(operation, fence, attempt, 'receipts',"
        " 'payment.finished', '{1}', 'payment', '{2}') AS id FROM mine;"
        " SELECT idem.complete(operation, fence, attempt, 201) FROM mine;"
        " COMMIT; SELECT replace(id::text, '-', '') FROM sent",
        key, payload, aggregate));
  }

  Ran idem(std::vector<std::string> words) {
    return run_program(built_program("idem"), std::move(words),
                       {"IDEM_ADMIN_URL=http://" + admin_, "IDEM_OPERATOR=grace"});
  }
  Json inbox() const {
    const auto answer =
        send_once(provider_->address(), {.method = "GET", .target = "/inbox", .fields = {}});
    return parse_json(answer.body).value_or(Json{});
  }
  std::string state_of(const std::string& id) {
    Psql sql(store_.database());
    return sql.run("SELECT state FROM idem.outbox WHERE id = '" + id + "'::uuid");
  }
  bool wait_for(const std::string& id, const std::string& state) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (state_of(id) != state) {
      if (std::chrono::steady_clock::now() > until) return false;
      back_off();
    }
    return true;
  }

  TempDir dir_;
  SharedStoreUrl store_{"postgres"};
  std::string secret_;
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Process> worker_;
  std::string admin_;
  int keys_ = 0;
};

TEST_F(Worker, S18_V24_delivers_signed_messages_enqueued_by_sql) {
  const auto id = send(R"({"amount":5})", "p 1%");
  ASSERT_TRUE(wait_for(id, "delivered")) << worker_->output();
  const Json box = inbox();
  EXPECT_EQ(box["rejected"].integer, 0);
  ASSERT_EQ(box["ids"].members.size(), 1);
  EXPECT_EQ(box["ids"].members[0].first, id);
  const auto seen =
      send_once(provider_->address(), {.method = "GET", .target = "/inbox?id=" + id, .fields = {}});
  const auto one = parse_json(seen.body).value_or(Json{});
  EXPECT_EQ(one["type"].string, "payment.finished");
  EXPECT_EQ(one["fields"]["ce-source"].string, "/shop");
  EXPECT_EQ(one["fields"]["ce-subject"].string, "payment/p%201%25");
  EXPECT_EQ(one["fields"]["ce-id"].string, id);
  EXPECT_EQ(one["fields"]["ce-specversion"].string, "1.0");
  EXPECT_EQ(worker_->output().find("expect"), std::string::npos);
  worker_->signal(SIGTERM);
  EXPECT_EQ(worker_->exit_code(), 0) << worker_->output();
}

TEST_F(Worker, V31_a_reload_is_refused_with_a_line_and_ends_nothing) {
  worker_->signal(SIGHUP);
  EXPECT_TRUE(worker_->wait_for_line("reload_refused"));
  const auto id = send("{}");
  EXPECT_TRUE(wait_for(id, "delivered")) << worker_->output();
  worker_->signal(SIGTERM);
  EXPECT_EQ(worker_->exit_code(), 0) << worker_->output();
}

/// Lines of a process about an event.
std::size_t lines_about(Process& process, const std::string& event) {
  const std::string output = process.output();
  std::size_t found = 0;
  for (auto at = output.find(event); at != output.npos; at = output.find(event, at + 1)) ++found;
  return found;
}

/// Everything that a worker does with its store: it asks a provider and has two destinations.
std::string busy_worker(const TempDir& dir, const std::string& store) {
  const auto secret = (dir.path() / "secret").string();
  std::ofstream(secret) << "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  const auto destination = [&](const char* name) {
    return fmt::format(
        "  - {{ name: {}, url: \"http://127.0.0.1:9/{}\", secret_files: [{}], source: /shop, "
        "deduplicates: 1h }}\n",
        name, name, secret);
  };
  const auto file = (dir.path() / "worker.yaml").string();
  std::ofstream(file) << "store: " << store << "\nadmin: 127.0.0.1:0\ndestinations:\n"
                      << destination("receipts") << destination("letters")
                      << "providers:\n  - name: bank\n"
                         "    url: \"http://127.0.0.1:9/charges?operation={operation}\"\n"
                         "    found: [\"200\"]\n    not_there: [\"404\"]\n";
  return file;
}

TEST(WorkerMetrics, V31_a_store_that_does_not_answer_is_down) {
  IDEM_NEED_PROGRAM("idem");
  PostgresServer server;
  const TempDir dir;
  const std::vector<std::string> store{"--store", server.uri()};
  ASSERT_EQ(run_program(built_program("idem"), {"migrate", store[0], store[1]}).exit_code, 0);
  Process worker({.program = built_program("idem"),
                  .arguments = {"worker", "--config", busy_worker(dir, server.uri())}});
  const auto admin = worker.wait_for_address("admin");
  ASSERT_FALSE(admin.empty()) << worker.output();
  const auto metric = [&](const std::string& name) {
    const auto metrics =
        send_once(admin, {.method = "GET", .target = "/metrics", .fields = {{"Host", admin}}});
    const auto at = metrics.body.find("\n" + name + " ");
    return at == metrics.body.npos ? -1 : std::atoi(metrics.body.c_str() + at + name.size() + 2);
  };
  EXPECT_EQ(metric("idem_store_up"), 1);
  server.stop();
  const auto until = std::chrono::steady_clock::now() + patience;
  while (metric("idem_store_up") != 0 || metric("idem_store_errors_total") < 20) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << worker.output();
    back_off();
  }
  // Few lines are written of many failures: each of them tries some times a second.
  const std::map<std::string, std::size_t> workers{
      {"sweep", 1}, {"reap", 1}, {"reconcile", 1}, {"relay", 2}};
  for (const auto& [name, times] : workers) {
    EXPECT_EQ(lines_about(worker, name + "_failed"), times) << worker.output();
  }
  server.start();
  for (const auto& [name, times] : workers) {
    while (lines_about(worker, name + "_recovered") < times) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << name << worker.output();
      back_off();
    }
  }
}

TEST_F(Worker, V23_a_dead_letter_is_seen_and_redriven_and_its_depth_is_a_metric) {
  provider_->arm("refuse=422", 2, "/inbox");
  const auto id = send("poison", "a");
  ASSERT_TRUE(wait_for(id, "dead")) << worker_->output();
  const auto listed = idem({"dlq", "list"});
  EXPECT_EQ(listed.exit_code, 0) << listed.output;
  for (const std::string& part : {id, std::string("receipts"), std::string("it answered 422")}) {
    EXPECT_NE(listed.output.find(part), std::string::npos) << listed.output;
  }
  const auto shown = idem({"dlq", "show", id});
  EXPECT_NE(shown.output.find("poison"), std::string::npos) << shown.output;
  EXPECT_NE(shown.output.find("history"), std::string::npos);
  const auto metrics =
      send_once(admin_, {.method = "GET", .target = "/metrics", .fields = {{"Host", admin_}}});
  EXPECT_NE(metrics.body.find(R"(idem_dead_letters{destination="receipts"} 1)"), std::string::npos);

  const auto tried = idem({"dlq", "redrive", id, "--reason", "mended", "--dry-run"});
  EXPECT_EQ(tried.exit_code, 0) << tried.output;
  EXPECT_NE(tried.output.find("dry run: nothing was changed"), std::string::npos);
  EXPECT_NE(tried.output.find("would be redriven"), std::string::npos) << tried.output;
  const std::vector<std::vector<std::string>> wrong{
      {"--all"}, {"--limit", "0"}, {"--rate", "0"}, {"--destination", "receipts"}};
  for (const auto& words : wrong) {
    std::vector<std::string> all{"dlq", "redrive", id, "--reason", "mended"};
    all.insert(all.end(), words.begin(), words.end());
    const auto refused = idem(all);
    EXPECT_EQ(refused.exit_code, 2) << words.front() << refused.output;
  }
  EXPECT_EQ(idem({"dlq", "list", "--limit", "0"}).exit_code, 2);
  EXPECT_EQ(idem({"outbox", "list", "--limit", "0"}).exit_code, 2);
  EXPECT_EQ(state_of(id), "dead");
  EXPECT_EQ(idem({"dlq", "redrive", id, "--reason", "mended"}).exit_code, 0);
  EXPECT_TRUE(wait_for(id, "delivered"));
  const auto history = idem({"outbox", "show", id, "--json"});
  EXPECT_NE(history.output.find("operator:grace: mended"), std::string::npos) << history.output;
  EXPECT_EQ(inbox()["ids"].members.size(), 1);
}

TEST_F(Worker, V23_all_dead_letters_are_redriven_or_discarded_by_a_job_of_the_worker) {
  // Fewer than the relay sends at a time: after a failure it waits longer and longer.
  constexpr int count = 4;
  worker_->signal(SIGTERM);
  worker_->wait();
  start("24h", 1);
  provider_->arm("refuse=422", count, "/inbox");
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(send("poison", fmt::format("a{}", i)));
  for (const auto& id : ids) ASSERT_TRUE(wait_for(id, "dead")) << worker_->output();
  const std::vector<std::string> redrive{"dlq", "redrive", "--all", "--job", "--reason", "mended"};
  const auto with_words = [&](std::vector<std::string> words,
                              const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return idem(words);
  };
  EXPECT_EQ(with_words(redrive, {"--expect", "5"}).exit_code, 5);
  EXPECT_EQ(with_words(redrive, {"--expect", "4", "--limit", "3"}).exit_code, 2);
  EXPECT_EQ(state_of(ids[0]), "dead");
  const auto done = with_words(redrive, {"--expect", "4", "--rate", "100"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  const auto jobs = idem({"jobs", "list", "--json"});
  const Json listed = parse_json(jobs.output).value_or(Json{})["jobs"];
  ASSERT_EQ(listed.items.size(), 1U) << jobs.output;
  EXPECT_EQ(listed.items[0]["done"].integer, count);
  for (const auto& id : ids) {
    EXPECT_TRUE(wait_for(id, "delivered")) << worker_->output();
    const auto shown = idem({"outbox", "show", id, "--json"});
    EXPECT_NE(shown.output.find("mended (job " + listed.items[0]["job"].string + ")"),
              std::string::npos)
        << shown.output;
  }
}

TEST_F(Worker, V29_a_dead_letter_is_discarded_when_a_second_person_has_approved_it) {
  const auto tokens = (dir_.path() / "tokens").string();
  std::map<std::string, std::string> token;
  for (const auto* const name : {"ada", "bob"}) {
    const auto made = run_program(
        built_program("idem"),
        {"admin", "token", name, "--role", "operator", "--tokens-file", tokens, "--json"});
    token[name] = parse_json(made.output).value_or(Json{})["token"].string;
  }
  worker_->signal(SIGTERM);
  worker_->wait();
  start("24h", 1, fmt::format("admin_tokens: {}\napprovals: {{ discard: 2 }}\n", tokens));
  const auto as = [&](const std::string& who, std::vector<std::string> words) {
    return run_program(built_program("idem"), std::move(words),
                       {"IDEM_ADMIN_URL=http://" + admin_, "IDEM_ADMIN_TOKEN=" + token.at(who),
                        "IDEM_OPERATOR=" + who});
  };
  provider_->arm("refuse=422", 1, "/inbox");
  const auto id = send("poison", "a");
  ASSERT_TRUE(wait_for(id, "dead")) << worker_->output();
  EXPECT_EQ(as("ada", {"dlq", "discard", "--all", "--reason", "gone"}).exit_code, 5);
  const auto first =
      send_once(admin_, {.method = "POST",
                         .target = "/v1/dlq/discard",
                         .fields = {{"Host", admin_},
                                    {"Content-Type", "application/json"},
                                    {"Authorization", "Bearer " + token.at("ada")}},
                         .body = fmt::format(R"({{"id":"{}","reason":"a mistake"}})", id)});
  EXPECT_EQ(first.status, 202) << first.raw;
  const std::string mistake = parse_json(first.body).value_or(Json{})["approval"].string;
  EXPECT_EQ(as("ada", {"approvals", "reject", mistake, "--reason", "r"}).exit_code, 0);
  const auto asked = as("ada", {"dlq", "discard", id, "--reason", "gone", "--json"});
  EXPECT_EQ(asked.exit_code, 5) << asked.output;
  EXPECT_EQ(state_of(id), "dead");
  const auto listed = as("bob", {"approvals", "list", "--json"});
  const Json waiting = parse_json(listed.output).value_or(Json{})["approvals"];
  ASSERT_EQ(waiting.items.size(), 2U) << listed.output;
  const bool is_newest_first = waiting.items[0]["approval"].string != mistake;
  const std::string approval = waiting.items[is_newest_first ? 0 : 1]["approval"].string;
  EXPECT_EQ(as("ada", {"approvals", "approve", approval, "--reason", "r"}).exit_code, 5);
  EXPECT_EQ(state_of(id), "dead");
  const auto approved = as("bob", {"approvals", "approve", approval, "--reason", "looked"});
  EXPECT_EQ(approved.exit_code, 0) << approved.output;
  EXPECT_EQ(state_of(id), "discarded");
  const auto shown = as("bob", {"outbox", "show", id, "--json"});
  EXPECT_NE(shown.output.find("operator:ada: gone (approved by bob, approval " + approval + ")"),
            std::string::npos)
      << shown.output;
}

TEST_F(Worker, S18_a_message_that_may_have_arrived_is_redriven_only_after_a_check) {
  worker_->signal(SIGTERM);
  worker_->wait();
  start("0s");
  provider_->arm("drop-after", 1, "/inbox");
  const auto id = send("once", "a");
  ASSERT_TRUE(wait_for(id, "dead")) << worker_->output();
  EXPECT_EQ(inbox()["arrivals"].integer, 1);
  const auto refused = idem({"dlq", "redrive", "--destination", "receipts", "--reason", "r"});
  EXPECT_NE(refused.output.find("may_have_arrived"), std::string::npos) << refused.output;
  EXPECT_EQ(state_of(id), "dead");
  EXPECT_EQ(idem({"dlq", "discard", id, "--reason", "it is there"}).exit_code, 0);
  EXPECT_EQ(state_of(id), "discarded");
  EXPECT_EQ(inbox()["arrivals"].integer, 1);
}

TEST_F(Worker, S18_the_admin_api_names_the_mistake_in_an_order) {
  const auto post = [&](const std::string& target, std::string body) {
    return send_once(admin_, {.method = "POST",
                              .target = target,
                              .fields = {{"Host", admin_},
                                         {"Content-Type", "application/json"},
                                         {"Idem-Operator", "grace"}},
                              .body = std::move(body)});
  };
  const auto says = [&](const Response& answer, std::string_view what) {
    EXPECT_EQ(answer.status, 400) << answer.raw;
    EXPECT_NE(answer.body.find(what), std::string::npos) << answer.body;
  };
  says(post("/v1/dlq/redrive", R"({"reason":"r"})"), "give id, destination or type, or all: true");
  says(post("/v1/dlq/redrive", R"({"all":true})"), "/reason: is missing");
  says(post("/v1/dlq/redrive", R"({"all":true,"reason":"r","rate":0})"), "/rate: must be");
  says(post("/v1/dlq/discard", R"({"all":true,"reason":"r","rate":1})"), "none of id, destination");
  says(post("/v1/dlq/discard", R"({"id":"x","reason":"r"})"), "/id: must have 32");
  const auto get = [&](const std::string& target) {
    return send_once(admin_, {.method = "GET", .target = target, .fields = {{"Host", admin_}}});
  };
  says(get("/v1/outbox?state=lost"), "state: must be waiting, delivered, dead or discarded");
  says(get("/v1/outbox?limit=0"), "limit: must be");
  says(get("/v1/outbox?operation_ref=x"), "operation_ref: must be 32 hexadecimal digits");
  says(get("/v1/outbox?destination=%00"), "destination: has a zero byte");
  says(post("/v1/dlq/redrive", R"({"type":"\u0000","reason":"r"})"), "a zero byte");
  says(get("/v1/dlq?state=dead"), "none of destination, operation_ref, limit and cursor");
  EXPECT_EQ(get("/v1/outbox/00000000000000000000000000000000").status, 404);
  EXPECT_EQ(post("/v1/outbox/00000000000000000000000000000000/retry", "{}").status, 404);
  EXPECT_EQ(idem({"outbox", "retry", "00000000000000000000000000000000"}).exit_code, 4);
  for (const std::string target :
       {"/v1/dlq/redrive", "/v1/outbox/00000000000000000000000000000000/retry"}) {
    says(send_once(admin_, {.method = "POST",
                            .target = target,
                            .fields = {{"Host", admin_}, {"Content-Type", "application/json"}},
                            .body = R"({"all":true,"reason":"r"})"}),
         "say by name who decides");
  }
  const auto answer =
      send_once(admin_, {.method = "POST",
                         .target = "/v1/dlq/redrive",
                         .fields = {{"Host", admin_}, {"Content-Type", "text/plain"}},
                         .body = R"({"all":true,"reason":"r"})"});
  EXPECT_EQ(answer.status, 415);
}

TEST_F(Worker, explains_no_request_because_it_serves_none) {
  const auto said = idem({"explain", "/charges"});
  EXPECT_EQ(said.exit_code, 4) << said.output;
  EXPECT_NE(said.output.find("ask a gateway"), std::string::npos) << said.output;
}

TEST_F(Worker, S18_the_admin_api_shows_and_decides_as_its_page_says) {
  const auto ask = [&](std::string method, const std::string& target, std::string body = {}) {
    return send_once(admin_, {.method = std::move(method),
                              .target = target,
                              .fields = {{"Host", admin_},
                                         {"Content-Type", "application/json"},
                                         {"Idem-Operator", "grace"}},
                              .body = std::move(body)});
  };
  provider_->arm("refuse=422", 2, "/inbox");
  const auto dead = send("poison", "a");
  ASSERT_TRUE(wait_for(dead, "dead")) << worker_->output();
  for (const std::string target : {"/v1/dlq", "/v1/outbox?state=dead"}) {
    const Json page = parse_json(ask("GET", target).body).value_or(Json{});
    ASSERT_EQ(page["messages"].items.size(), 1U) << target;
    EXPECT_EQ(page["messages"].items[0]["id"].string, dead) << target;
  }
  const std::string record =
      parse_json(ask("GET", "/v1/outbox/" + dead).body).value_or(Json{})["operation_ref"].string;
  for (const std::string target : {"/v1/dlq?operation_ref=", "/v1/outbox?operation_ref="}) {
    const Json page = parse_json(ask("GET", target + record).body).value_or(Json{});
    ASSERT_EQ(page["messages"].items.size(), 1U) << target;
    const Json none = parse_json(ask("GET", target + std::string(32, '0')).body).value_or(Json{});
    EXPECT_TRUE(none.has("messages") && none["messages"].items.empty()) << target;
  }
  EXPECT_NE(idem({"outbox", "list", "--operation-ref", record}).output.find(dead.substr(0, 8)),
            std::string::npos);
  for (const auto* folder : {"/v1/dlq/", "/v1/outbox/"}) {
    const Json shown = parse_json(ask("GET", folder + dead).body).value_or(Json{});
    EXPECT_EQ(shown["payload"].string, "poison") << folder;
    EXPECT_EQ(shown["history"].items.size(), 2U) << folder;
  }
  const std::string order = R"({"id":")" + dead + R"(","reason":"r")";
  EXPECT_EQ(ask("POST", "/v1/dlq/redrive", order + R"(,"dry_run":true})").status, 200);
  EXPECT_EQ(ask("POST", "/v1/dlq/discard", order + "}").status, 200);
  EXPECT_EQ(state_of(dead), "discarded");
  EXPECT_EQ(ask("POST", "/v1/outbox/" + dead + "/retry", "{}").status, 409);
  provider_->arm("refuse=429,header=Retry-After:3600", 1, "/inbox");
  const auto waiting = send("later", "b");
  ASSERT_TRUE(worker_->wait_for_line("answered 429")) << worker_->output();
  EXPECT_EQ(ask("POST", "/v1/outbox/" + waiting + "/retry", "{}").status, 200);
  EXPECT_TRUE(wait_for(waiting, "delivered"));
  EXPECT_EQ(ask("GET", "/livez").status, 200);
}

TEST_F(Worker, S18_a_message_that_was_put_off_can_be_hastened) {
  provider_->arm("refuse=429,header=Retry-After:3600", 1, "/inbox");
  const auto id = send("later", "a");
  ASSERT_TRUE(worker_->wait_for_line("delivery_failed")) << worker_->output();
  const auto page = idem({"outbox", "list", "--state", "waiting", "--destination", "receipts"});
  EXPECT_NE(page.output.find("it answered 429"), std::string::npos) << page.output;
  EXPECT_EQ(idem({"outbox", "retry", id}).exit_code, 0);
  EXPECT_TRUE(wait_for(id, "delivered"));
  EXPECT_EQ(idem({"outbox", "retry", id}).exit_code, 5);
}

TEST(WorkerConfig, S18_destinations_are_checked_at_the_start) {
  IDEM_NEED_PROGRAM("idem");
  const TempDir dir;
  const auto open_secret = (dir.path() / "open").string();
  std::ofstream(open_secret) << "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
  const auto bad_secret = (dir.path() / "bad").string();
  std::ofstream(bad_secret) << "no secret\n";
  std::filesystem::permissions(bad_secret, std::filesystem::perms::owner_read);
  const auto refusal = [&](const std::string& destination, const std::string& store = "memory:") {
    const auto file = (dir.path() / "idem.yaml").string();
    std::ofstream(file) << "store: \"" + store + "\"\ndestinations:\n" + destination;
    const auto ran = run_program(built_program("idem"), {"worker", "--config", file});
    EXPECT_NE(ran.exit_code, 0);
    return ran.output;
  };
  const auto says = [](const std::string& output, std::string_view what) {
    EXPECT_NE(output.find(what), std::string::npos) << output;
  };
  says(refusal("  - {name: a, url: \"http://h/\"}\n"), "deduplicates");
  says(refusal("  - {name: a, url: \"ftp://h/\", deduplicates: 1h}\n"), "begins with http");
  says(refusal("  - {name: a, url: \"http://h/\", deduplicates: 1h, timeout: 1m}\n"),
       "at most 20s");
  says(refusal("  - {name: a, url: \"http://h/\", deduplicates: 1h}\n"
               "  - {name: a, url: \"http://i/\", deduplicates: 1h}\n"),
       "names two destinations");
  says(refusal("  - {name: a, url: \"http://h/\", deduplicates: 1h, secret_files: [" + bad_secret +
               "]}\n"),
       "begins with whsec_");
  says(refusal("  - {name: a, url: \"http://h/\", deduplicates: 1h, secret_files: [" + open_secret +
               "]}\n"),
       "others may read it");
  const std::string good = "  - {name: a, url: \"http://h/\", deduplicates: 1h}\n";
  says(refusal(good), "has no outbox");
  const auto file = (dir.path() / "gateway.yaml").string();
  std::ofstream(file) << "store: \"memory:\"\nlisten: 127.0.0.1:0\nscope: {from: authorization}\n"
                         "upstream: {url: \"http://127.0.0.1:9\"}\ndestinations:\n"
                      << good;
  says(run_program(built_program("idem"), {"gateway", "--config", file}).output, "has no outbox");
}

/// A store that a worker made itself would hold no gateway's records.
TEST(WorkerConfig, S02_a_worker_never_makes_a_store) {
  IDEM_NEED_PROGRAM("idem");
  const TempDir dir;
  const auto path = dir.path() / "idem.db";
  const auto ran =
      run_program(built_program("idem"), {"worker", "--store", "sqlite:" + path.string()});
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_NE(ran.output.find(path.string() + ": there is no store here"), std::string::npos)
      << ran.output;
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path).close();
  EXPECT_EQ(run_program(built_program("idem"), {"worker", "--store", "sqlite:" + path.string()})
                .exit_code,
            1);
  EXPECT_EQ(std::filesystem::file_size(path), 0U) << "an empty file is no store either";
}

}  // namespace
}  // namespace idem::test
