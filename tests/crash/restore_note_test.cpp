#include <gtest/gtest.h>

#include "crash/judge.hpp"
#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/live.hpp"

/// What a restore leaves for those who operate the store later.
namespace idem::test {
namespace {

class RestoreNoted : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    start();
  }
  void start() {
    gateway_ = std::make_unique<Gateway>(
        GatewayOptions{.upstream = provider_.address(), .store_url = url()});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  std::string file(const std::string& name) const { return dir_.path() / name; }
  std::string url() const { return GetParam() + ":" + file("store"); }

  static Ran idem(std::vector<std::string> words) {
    return run_program(built_program("idem"), std::move(words));
  }
  Json asked(std::vector<std::string> words) const {
    for (const char* const word : {"--json", "--admin-url"}) words.emplace_back(word);
    words.push_back("http://" + gateway_->admin());
    const Ran ran = idem(std::move(words));
    const auto begin = ran.output.find('{');
    EXPECT_NE(begin, std::string::npos) << ran.output;
    if (begin == std::string::npos) return {};
    return parse_json(ran.output.substr(begin, ran.output.find('\n', begin) - begin))
        .value_or(Json{});
  }
  /// The gateway writes them in the background.
  std::vector<Json> audit_of_restores(std::size_t at_least) const {
    for (int tries = 0;; ++tries) {
      auto lines = asked({"audit", "list", "--what", "store.restored"})["audit"].items;
      if (lines.size() >= at_least || tries == 500) return lines;
      back_off();
    }
  }
  void back_up_and_restore() {
    ASSERT_EQ(idem({"store", "backup", url(), file("copy")}).exit_code, 0);
    provider_.release("h");
    ASSERT_EQ(gateway_->terminate(), 0);
    const Ran restored = idem({"store", "restore", file("copy"), url(), "--replace"});
    ASSERT_EQ(restored.exit_code, 0) << restored.output;
    std::filesystem::remove_all(file("copy"));
    start();
  }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<Gateway> gateway_;
};

INSTANTIATE_TEST_SUITE_P(Stores, RestoreNoted, testing::Values("sqlite", "embedded"),
                         [](const auto& kind) { return kind.param; });

TEST_P(RestoreNoted, S19_its_span_and_what_was_open_are_in_the_audit_the_log_and_the_status) {
  ASSERT_EQ(send_once(gateway_->address(), charge("before")).status, 201);
  EXPECT_EQ(asked({"status"})["store"]["restored"].kind, Json::Kind::null);
  back_up_and_restore();
  const Json restored = asked({"status"})["store"]["restored"];
  const std::string span = restored["copied_at"].string + " to " + restored["restored_at"].string;
  EXPECT_LT(restored["copied_at"].string, restored["restored_at"].string);
  EXPECT_EQ(restored["in_progress"].integer, 0);
  auto lines = audit_of_restores(1);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0]["after"].string.find(span), std::string::npos) << lines[0]["after"].string;
  EXPECT_NE(lines[0]["after"].string.find("No record was open"), std::string::npos);
  EXPECT_NE(gateway_->process().output().find("store_restored missing=\"" + span + '"'),
            std::string::npos)
      << gateway_->process().output();
  const Ran shown = idem({"status", "--admin-url", "http://" + gateway_->admin()});
  EXPECT_NE(shown.output.find("keys are missing from " + span), std::string::npos) << shown.output;

  // With an attempt in the copy, whose ref is named.
  Connection running(gateway_->address());
  running.send(charge("runs", "hold=h"));
  ASSERT_TRUE(provider_.wait_held("h", 1));
  back_up_and_restore();
  const Json second = asked({"status"})["store"]["restored"];
  EXPECT_EQ(second["in_progress"].integer, 1);
  ASSERT_EQ(second["first"].items.size(), 1U);
  const Json unknown = asked({"keys", "list", "--state", "unknown"})["keys"];
  ASSERT_EQ(unknown.items.size(), 1U);
  EXPECT_EQ(second["first"].items[0].string, unknown.items[0]["ref"].string);
  lines = audit_of_restores(2);
  ASSERT_EQ(lines.size(), 2U);

  // Each start says it, and the audit has it once.
  ASSERT_EQ(gateway_->terminate(), 0);
  start();
  EXPECT_NE(gateway_->process().output().find("store_restored"), std::string::npos);
  ASSERT_EQ(idem({"audit", "verify", "--admin-url", "http://" + gateway_->admin()}).exit_code, 0);
  EXPECT_EQ(audit_of_restores(2).size(), 2U);
}

}  // namespace
}  // namespace idem::test
