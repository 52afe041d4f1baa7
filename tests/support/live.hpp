#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/external_data.hpp"
#include "support/gateway_fixture.hpp"
#include "support/problem.hpp"
#include "support/temp_dir.hpp"

namespace idem::test {

/// POST /charges of tenant `acme` with this Idempotency-Key and, for the provider, these faults.
Request charge(std::string_view key, std::string_view faults = {},
               std::string_view body = R"({"amount":1250,"currency":"EUR"})");

/// `request` with one more field.
Request with(Request request, std::string_view name, std::string_view value);
/// `request` without any field of this name.
Request without(Request request, std::string_view name);

/// Asks, and asks again as a client would, for as long as the answer is 409 `in_progress` or the
/// gateway does not answer.
Response ask_until_settled(std::string_view address, const Request& request);

/// Succeeds when `replay` is `first` once more: status, body and fields alike, but for the fields
/// that are never stored, the framing, and the three that tell a replay.
testing::AssertionResult replays(const Response& first, const Response& replay);

/// The values that the provider's /echo says it received under this name.
std::vector<std::string> echoed(const Response& answer, std::string_view name);

/// A provider, and a gateway in front of it on a store of its own.
class Live : public testing::Test {
 protected:
  void SetUp() override;

  /// Arguments for this fixture's gateway besides the usual ones.
  virtual std::vector<std::string> flags() const { return {}; }
  GatewayOptions options(std::string upstream) const;

  Response ask(const Request& request) { return send_once(gateway_->address(), request); }
  int effects(std::string_view key) const { return provider_->effects(key); }

  TempDir dir_;
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace idem::test
