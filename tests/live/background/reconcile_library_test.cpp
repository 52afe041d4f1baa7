#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "support/admin.hpp"
#include "support/shared_store.hpp"

/// `idem reconcile` for a service with the library: no gateway, and a provider that was given
/// derived keys. An `idem worker` has the admin API.
namespace idem::test {
namespace {

class ReconcileLibrary : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    IDEM_NEED_PROGRAM("payments");
    if (live_store_kind() != "sqlite") shared_ = std::make_unique<SharedStoreUrl>("postgres");
    provider_ = std::make_unique<Provider>();
    payments_ = std::make_unique<Process>(ProcessOptions{
        .program = built_program("payments"),
        .arguments = {"--listen", "127.0.0.1:0", "--provider", "http://" + provider_->address(),
                      "--provider-is", "neither", "--store", store()}});
    address_ = payments_->wait_for_address("payments");
    ASSERT_FALSE(address_.empty()) << payments_->output();
  }
  std::string store() const {
    return shared_ ? shared_->url() : "sqlite:" + (dir_.path() / "service.db").string();
  }

  Response pay(const std::string& key) {
    Request request = charge(key, {}, R"({"amount":700,"currency":"eur","source":"tok"})");
    request.target = "/payments";
    return send_once(address_, request);
  }
  /// One process owns a SQLite file: the worker comes when the service is gone.
  void change_over() {
    payments_->signal(SIGTERM);
    payments_->wait();
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << "store: " << store() << "\nadmin: 127.0.0.1:0\n";
    worker_ = std::make_unique<Process>(ProcessOptions{.program = built_program("idem"),
                                                       .arguments = {"worker", "--config", file}});
    admin_ = worker_->wait_for_address("admin");
    ASSERT_FALSE(admin_.empty()) << worker_->output();
  }
  void charge_directly(const std::string& key) {
    EXPECT_EQ(send_once(provider_->address(), charge(key)).status, 201);
  }
  Json reconcile(std::vector<std::string> words, int exit_code) {
    words.insert(words.begin(), {"reconcile", export_, "--json", "--amount", "amount"});
    const Ran ran = run_program(built_program("idem"), words, {"IDEM_ADMIN_URL=http://" + admin_});
    EXPECT_EQ(ran.exit_code, exit_code) << ran.output;
    return parse_json(ran.output).value_or(Json{});
  }
  void take_export() {
    export_ = (dir_.path() / "export.jsonl").string();
    std::ofstream(export_, std::ios::binary)
        << send_once(provider_->address(),
                     {.method = "GET", .target = "/export?format=jsonl", .fields = {}})
               .body;
  }
  /// The key that the provider was given for its charge in this line.
  std::string exported_key(std::size_t number) const {
    std::ifstream file(export_);
    std::string line;
    for (std::size_t i = 0; i < number; ++i) std::getline(file, line);
    return parse_json(line).value_or(Json{})["key"].string;
  }
  static std::int64_t count(const Json& report, const char* kind) {
    return report["counts"][kind].integer;
  }

  TempDir dir_;
  std::unique_ptr<SharedStoreUrl> shared_;
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Process> payments_;
  std::unique_ptr<Process> worker_;
  std::string address_;
  std::string admin_;
  std::string export_;
};

TEST_F(ReconcileLibrary, V37_finds_lines_missing_on_either_side_by_the_derived_key) {
  for (const auto* key : {"k1", "k2", "k3"}) ASSERT_EQ(pay(key).status, 201) << key;
  provider_->arm("drop-after", 1, "/charges");
  ASSERT_NE(pay("lost").status, 201);
  take_export();
  const std::string first = exported_key(1);
  charge_directly(first);
  charge_directly("foreign");
  take_export();
  change_over();
  const std::vector<std::string> derived{"--by", "derived", "--phase", "charged", "--id", "id"};
  const Json report = reconcile(derived, 5);
  EXPECT_EQ(count(report, "agree"), 2);
  EXPECT_EQ(count(report, "duplicate"), 1);
  EXPECT_EQ(count(report, "theirs_only"), 1);
  EXPECT_EQ(count(report, "undecided"), 1);
  EXPECT_EQ(report["differences"].integer, 2);
  const Json& twice = report["findings"].items.at(0);
  EXPECT_EQ(twice["kind"].string, "duplicate");
  EXPECT_EQ(twice["lines"].items.size(), 2U);
  EXPECT_EQ(twice["lines"].items.at(0)["id"].string, "ch_1");
  EXPECT_EQ(twice["lines"].items.at(1)["id"].string, "ch_5");

  // By the charge that the stored answer names, who is charged twice is two.
  const Json by_reference = reconcile({"--by", "reference", "--our-reference", "/charge"}, 5);
  EXPECT_EQ(count(by_reference, "agree"), 3);
  EXPECT_EQ(count(by_reference, "theirs_only"), 3);

  std::vector<std::string> resolving = derived;
  resolving.insert(resolving.end(), {"--status", "status", "--happened", "succeeded", "--resolve",
                                     "--response-status", "201"});
  // The key of another phase is on no line: all is missing, and none of it is believed.
  std::vector<std::string> wrong = resolving;
  wrong.at(3) = "payment_created";
  wrong.insert(wrong.end(), {"--resolve-absent", "--from", "2020-01-01T00:00:00Z", "--to",
                             "2100-01-01T00:00:00Z", "--observed-at", "2100-01-03T00:00:00Z"});
  for (const Json& one : reconcile(wrong, 5)["findings"].items) {
    EXPECT_FALSE(one.has("resolved_as"));
  }
  const Json resolved = reconcile(resolving, 5);
  const auto& findings = resolved["findings"].items;
  const auto lost = std::ranges::find_if(
      findings, [](const Json& one) { return one["kind"].string == "undecided"; });
  ASSERT_NE(lost, findings.end());
  EXPECT_EQ((*lost)["resolved_as"].string, "completed");
  EXPECT_EQ(count(reconcile(derived, 5), "undecided"), 0);
}

}  // namespace
}  // namespace idem::test
