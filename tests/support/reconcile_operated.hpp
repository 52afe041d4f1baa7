#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "support/admin.hpp"

namespace idem::test {

/// `idem reconcile` against what really happened at the provider. 0: all agree, 1: not compared as
/// a whole, 2: usage, 3: not reachable, 5: they differ.
class ReconcileOperated : public Operated {
 protected:
  std::vector<std::string> flags() const override {
    return {"--lease", "2s", "--upstream-timeout", "1s", "--evidence-grace", "0s"};
  }

  std::string exported(const std::string& query) {
    const auto answer = send_once(provider_->address(),
                                  {.method = "GET", .target = "/export?" + query, .fields = {}});
    EXPECT_EQ(answer.status, 200) << answer.raw;
    return answer.body;
  }
  std::string file_of(const std::string& name, const std::string& content) {
    const auto path = (dir_.path() / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string csv() { return file_of("charges.csv", exported("format=csv")); }

  Ran run(std::vector<std::string> words) {
    words.insert(words.begin(), "reconcile");
    return run_program(built_program("idem"), std::move(words),
                       {"IDEM_ADMIN_URL=http://" + gateway_->admin(), "IDEM_OPERATOR=grace"});
  }
  /// With all that the provider's export has to say.
  Ran reconcile(const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> words{file,         "--by",     "operation", "--amount", "amount",
                                   "--currency", "currency", "--status",  "status",   "--happened",
                                   "succeeded",  "--id",     "id",        "--time",   "created"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  /// The report that it prints with --json: the document begins a line.
  static Json report_of(const Ran& ran) {
    const auto at = ("\n" + ran.output).find("\n{");
    if (at == std::string::npos) return Json{};
    const auto end = ran.output.find('\n', at);
    return parse_json(ran.output.substr(at, end - at)).value_or(Json{});
  }
  static std::int64_t count(const Json& report, const char* kind) {
    return report["counts"][kind].integer;
  }
  static const Json& finding(const Json& report, const std::string& kind) {
    static const Json none;
    const auto& all = report["findings"].items;
    const auto found =
        std::ranges::find_if(all, [&](auto& one) { return one["kind"].string == kind; });
    return found != all.end() ? *found : none;
  }
  std::string ref_of(const std::string& key) {
    const Json page = read("/v1/keys?scope=acme&operation=POST%20/charges&key=" + key);
    return page["keys"].items.empty() ? "" : page["keys"].items[0]["ref"].string;
  }
  /// A charge that reaches the provider without us, under a handle or key of ours.
  void charge_directly(const std::string& key, const std::string& handle,
                       const std::string& body = R"({"amount":1250,"currency":"EUR"})") {
    Request request{.fields = {{"Host", provider_->address()},
                               {"Content-Type", "application/json"},
                               {"Idempotency-Key", key}},
                    .body = body};
    if (!handle.empty()) request.fields.push_back({"Idem-Operation", handle});
    EXPECT_EQ(send_once(provider_->address(), request).status, 201);
  }
};

}  // namespace idem::test
