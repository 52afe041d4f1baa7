#include "crash/bank.hpp"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/webhook_signer.hpp"

namespace idem::test {

Bank::Bank(BankOptions options)
    : options_(std::move(options)),
      shared_(options_.store == "sqlite" ? nullptr
                                         : std::make_unique<SharedStoreUrl>(options_.store)),
      secret_((dir_.path() / "secret").string()),
      provider_(std::make_unique<Provider>()) {
  std::ofstream(secret_) << webhook_example_secret << "\n";
  std::filesystem::permissions(secret_, std::filesystem::perms::owner_read);
  const auto file = (dir_.path() / "gateway.yaml").string();
  std::ofstream(file) << config(options_.gateway_reconciles, "");
  gateway_ = std::make_unique<Gateway>(GatewayOptions{
      .upstream = provider_->address(),
      .store = dir_.path() / "idem.db",
      .store_url = shared_ ? shared_->url() : "sqlite:" + (dir_.path() / "idem.db").string(),
      .flags = {"--config", file, "--upstream-timeout", "1s", "--lease",
                fmt::format("{}ms", options_.lease.count())},
      .program = "idem-crash"});
  if (!options_.sends_events || !gateway_->running()) return;
  // Each names the other; the bank can be started anew at its address.
  const std::string at = provider_->address();
  provider_.reset();
  provider_ = std::make_unique<Provider>(
      at, std::vector<std::string>{"--webhook-url",
                                   "http://" + gateway_->address() + "/.idem/events/bank",
                                   "--webhook-secret-file", secret_});
}

std::string Bank::config(bool reconciles, const std::string& more) const {
  if (!reconciles) return "routes:\n  - match: { path: /charges }\n    name: charge\n" + more;
  std::string text = fmt::format(
      "{}providers:\n"
      "  - name: bank\n"
      "    grace: {}ms\n"
      "    retry_first: {}ms\n"
      "    retry_max: {}ms\n"
      "    attempts: {}\n"
      "    replay:\n"
      "      found_status: 201\n",
      more, options_.grace.count(), options_.retry_first.count(), options_.retry_max.count(),
      options_.attempts);
  if (options_.is_asked) {
    text += fmt::format(
        "      body: /charges/0\n"
        "      headers: [\"Location: /charges/{{/charges/0/id}}\"]\n"
        "    url: \"http://{}/charges?operation={{operation}}\"\n"
        "    found: [\"200 /charges/0\"]\n"
        "    not_there: [\"200 !/charges/0\"]\n",
        provider_->address());
  }
  if (options_.sends_events) {
    text += fmt::format(
        "    events:\n"
        "      signature: standard\n"
        "      secret_files: [{}]\n"
        "      operation: /data/operation\n"
        "      fence: /data/fence\n"
        "      found: [/type=charge.succeeded]\n"
        "      body: /data\n"
        "      headers: [\"Location: /charges/{{/data/id}}\"]\n",
        secret_);
  }
  return text +
         "routes:\n"
         "  - match: { path: /charges }\n"
         "    name: charge\n"
         "    reconcile: bank\n";
}

void Bank::restart_gateway(std::vector<std::string> environment) {
  gateway_->restart(std::move(environment), true);
}

void Bank::start_worker(std::vector<std::string> environment) {
  worker_.reset();
  const auto file = (dir_.path() / "worker.yaml").string();
  std::ofstream(file) << config(true, fmt::format("store: {}\nadmin: 127.0.0.1:0\n"
                                                  "scope:\n  from: header:X-Tenant-Id\n"
                                                  "  trust_header: true\n",
                                                  shared_->url()));
  worker_ = std::make_unique<Process>(ProcessOptions{.program = built_program("idem-crash"),
                                                     .arguments = {"worker", "--config", file},
                                                     .environment = std::move(environment)});
  EXPECT_FALSE(worker_->wait_for_address("admin").empty()) << worker_->output();
}

Json Bank::read(const std::string& target) const {
  const auto answer =
      send_once(gateway_->admin(),
                {.method = "GET", .target = target, .fields = {{"Host", gateway_->admin()}}});
  EXPECT_EQ(answer.status, 200) << target << "\n" << answer.raw;
  return parse_json(answer.body).value_or(Json{});
}

Json Bank::listed(const std::string& key) const {
  const Json page = read("/v1/keys?scope=acme&operation=charge&key=" + key);
  return page["keys"].items.empty() ? Json{} : page["keys"].items[0];
}

bool Bank::is_quiet() const {
  for (const auto* state : {"pending", "in_progress", "unknown"}) {
    if (!read(fmt::format("/v1/keys?limit=1&state={}", state))["keys"].items.empty()) return false;
  }
  const auto webhooks = send_once(provider_->address(), {.method = "GET", .target = "/webhooks"});
  return parse_json(webhooks.body).value_or(Json{})["under_way"].integer == 0;
}

bool Bank::wait_until_settled(std::chrono::milliseconds at_most) const {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!is_quiet()) {
    if (std::chrono::steady_clock::now() > until) return false;
    back_off();
  }
  return true;
}

std::vector<Json> Bank::exported() const {
  const auto answer =
      send_once(provider_->address(), {.method = "GET", .target = "/export?format=jsonl"});
  EXPECT_EQ(answer.status, 200);
  std::vector<Json> lines;
  std::istringstream text(answer.body);
  for (std::string line; std::getline(text, line);) {
    auto json = parse_json(line);
    EXPECT_TRUE(json) << line;
    if (json) lines.push_back(std::move(*json));
  }
  return lines;
}

Json Bank::compared() const {
  const auto ran = run_program(
      built_program("idem"),
      {"reconcile",        "--url",     "http://" + provider_->address() + "/export?limit=1000",
       "--next-parameter", "cursor",    "--by",
       "operation",        "--id",      "id",
       "--amount",         "amount",    "--currency",
       "currency",         "--status",  "status",
       "--happened",       "succeeded", "--time",
       "created",          "--json"},
      {"IDEM_ADMIN_URL=http://" + gateway_->admin()});
  const auto at = ("\n" + ran.output).find("\n{");
  EXPECT_NE(at, std::string::npos) << ran.output;
  if (at == std::string::npos) return {};
  return parse_json(ran.output.substr(at, ran.output.find('\n', at) - at)).value_or(Json{});
}

}  // namespace idem::test
