#pragma once

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/webhook_signer.hpp"

namespace idem::test {

/// A provider that tells of its charges by signed events: `bank`, which is asked about all records
/// but those under /other, and `other`, which is asked about those.
class Events : public Operated {
 protected:
  void SetUp() override {
    secret_ = (dir_.path() / "secret").string();
    std::ofstream(secret_) << webhook_example_secret << "\n";
    std::filesystem::permissions(secret_, std::filesystem::perms::owner_read);
    Operated::SetUp();
    // Each names the other; the provider can be started anew at its address.
    const std::string at = provider_->address();
    provider_.reset();
    provider_ = std::make_unique<Provider>(
        at, std::vector<std::string>{"--webhook-url",
                                     "http://" + gateway_->address() + "/.idem/events/bank",
                                     "--webhook-secret-file", secret_});
    ASSERT_TRUE(provider_->running());
  }

  std::vector<std::string> flags() const override {
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << "providers:\n"
                        << source("bank") << source("other")
                        << "routes:\n"
                           "  - match: { path: \"/other/{rest...}\" }\n"
                           "    reconcile: other\n"
                           "  - match: { path: \"/{rest...}\" }\n"
                           "    reconcile: bank\n";
    return {"--config", file, "--upstream-timeout", "5s", "--lease", "10s"};
  }

  std::string source(std::string_view name) const {
    return fmt::format(
        "  - name: {}\n"
        "    retry_first: 100ms\n"
        "    retry_max: 400ms\n"
        "    replay: {{ found_status: 201 }}\n"
        "    events:\n"
        "      signature: standard\n"
        "      secret_files: [{}]\n"
        "{}"
        "      reference: /data/id\n"
        "      fence: /data/fence\n"
        "      found: [/type=charge.succeeded]\n"
        "      failed: [/type=charge.failed]\n"
        "      body: /data\n"
        "      headers: [\"Location: /charges/{{/data/id}}\"]\n",
        name, secret_, operation_line());
  }
  /// The name of the record, where it is not the reference.
  virtual std::string operation_line() const { return "      operation: /data/operation\n"; }

  /// As the provider would send it.
  Response send_event(const std::string& body, const std::string& id = "msg_1",
                      std::string_view secret = webhook_example_secret,
                      std::string_view by = "bank") {
    const std::string at = std::to_string(std::time(nullptr));
    return send_once(gateway_->address(),
                     {.method = "POST",
                      .target = "/.idem/events/" + std::string(by),
                      .fields = {{"Host", gateway_->address()},
                                 {"Content-Type", "application/json"},
                                 {"webhook-id", id},
                                 {"webhook-timestamp", at},
                                 {"webhook-signature", webhook_signature(secret, id, at, body)}},
                      .body = body});
  }
  static std::string succeeded(const std::string& ref, const std::string& more = "") {
    return fmt::format(R"({{"type":"charge.succeeded","data":{{"id":"ch_9","operation":"{}"{}}}}})",
                       ref, more);
  }
  static std::string ref_of(const Response& answer) {
    return parse_json(answer.body).value_or(Json{})["operation_ref"].string;
  }
  /// An unknown record, about which the provider has sent no event.
  std::string lose(std::string_view key) {
    const auto lost = ask(charge(key, "drop-after,lose-webhook"));
    EXPECT_EQ(lost.status, 502) << lost.raw;
    return ref_of(lost);
  }
  /// The same of which the upstream's reference is known, for its answer came, and says nothing.
  std::string lose_with_reference(std::string_view key, const std::string& reference,
                                  const std::string& path = "/charges") {
    const auto before = refs_of_unknown();
    Request request = charge(key, "500-after,lose-webhook,header=Idem-Reference:" + reference);
    request.target = path;
    EXPECT_EQ(ask(request).get("Idempotency-Outcome"), "unknown");
    for (const auto& ref : refs_of_unknown()) {
      if (!before.contains(ref)) return ref;
    }
    return "";
  }
  std::set<std::string> refs_of_unknown() {
    std::set<std::string> refs;
    const Json page = read("/v1/keys?state=unknown");
    for (const Json& record : page["keys"].items) refs.insert(record["ref"].string);
    return refs;
  }
  /// Of one that names its record by the reference and its attempt.
  std::string about(const std::string& reference, const std::string& ref) {
    return fmt::format(R"({{"type":"charge.succeeded","data":{{"id":"{}"{}}}}})", reference,
                       fence_of(ref));
  }
  Json record_of(const std::string& ref) { return read("/v1/keys/" + ref); }
  /// The member that names the attempt which is current.
  std::string fence_of(const std::string& ref) {
    return fmt::format(R"(,"fence":{})", record_of(ref)["fence"].integer);
  }
  std::string settled(const std::string& ref) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const std::string state = record_of(ref)["state"].string;
      if (state != "unknown" || std::chrono::steady_clock::now() > until) return state;
      back_off();
    }
  }

  std::string secret_;
};

}  // namespace idem::test
