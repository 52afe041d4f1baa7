#include "support/admin.hpp"

/// What a gateway writes before it ends itself.
namespace idem::test {
namespace {

class JsonLog : public Live {
 protected:
  void SetUp() override {
    provider_ = std::make_unique<Provider>();
    ASSERT_TRUE(provider_->running());
    auto limited = options(provider_->address());
    limited.flags = {"--log-format", "json"};
    limited.file_bytes_max = 16UL << 20U;  // To the gateway, the disk is full from there on.
    gateway_ = std::make_unique<Gateway>(std::move(limited));
    ASSERT_TRUE(gateway_->running());
  }
};

TEST_F(JsonLog, R31_has_no_line_that_is_not_json_not_even_the_last_one) {
  for (int i = 0; i < 100 && !gateway_->process().ended(); ++i) {
    (void)ask(charge("k" + std::to_string(i), "size=900000"));
  }
  ASSERT_EQ(gateway_->process().exit_code(), 128 + SIGABRT);
  std::istringstream lines(gateway_->process().output());
  Json last;
  for (std::string line; std::getline(lines, line);) {
    const auto read = parse_json(line);
    ASSERT_TRUE(read) << line;
    last = *read;
  }
  EXPECT_EQ(last["event"].string, "process_aborted");
  EXPECT_EQ(last["level"].string, "error");
  EXPECT_TRUE(last["reason"].string.starts_with("sqlite store failed path="))
      << last["reason"].string;
}

TEST(Assertions, R31_of_libraries_end_in_the_log_of_the_program) {
  const auto ran =
      run_program(built_program("idem"), {"version"}, {"LD_DEBUG=bindings", "LD_BIND_NOW=1"});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  std::istringstream lines(ran.output);
  int bound = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_of_the_store = line.find("librocksdb") != std::string::npos;
    if (!is_of_the_store || line.find("symbol `__assert_fail'") == std::string::npos) continue;
    ++bound;
    EXPECT_NE(line.find("/idem [0]: normal symbol"), std::string::npos) << line;
  }
  EXPECT_EQ(bound, 1) << "Debian's RocksDB is compiled with its assertions";
}

}  // namespace
}  // namespace idem::test
