#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/live.hpp"
#include "support/scripted_upstream.hpp"

namespace idem::test {

/// A gateway in front of an upstream that plays a script. One loop, and so one pool of upstream
/// connections.
class Scripted : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }

  // Scripts may still use what a test's own fixture holds.
  void TearDown() override {
    gateway_.reset();
    upstream_.reset();
  }

  void start(ScriptedUpstream::Script script, std::vector<std::string> flags = {},
             GatewayOptions options = {}) {
    gateway_.reset();
    upstream_ = std::make_unique<ScriptedUpstream>(std::move(script));
    options.upstream = upstream_->address();
    options.store = dir_.path() / "idem.db";
    options.flags = {"--threads", "1"};
    options.flags.insert(options.flags.end(), flags.begin(), flags.end());
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  Response ask(const Request& request) { return send_once(gateway_->address(), request); }

  TempDir dir_;
  std::unique_ptr<ScriptedUpstream> upstream_;
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace idem::test
