#include "support/live.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "support/back_off.hpp"
#include "support/json.hpp"

namespace idem::test {
namespace {

std::vector<Field> comparable(const std::vector<Field>& fields) {
  constexpr std::array<std::string_view, 13> apart{"Idempotent-Replayed",
                                                   "Idempotency-Expires",
                                                   "Idempotency-Outcome",
                                                   "Content-Length",
                                                   "Transfer-Encoding",
                                                   "Connection",
                                                   "Keep-Alive",
                                                   "Set-Cookie",
                                                   "WWW-Authenticate",
                                                   "Authentication-Info",
                                                   "Alt-Svc",
                                                   "Clear-Site-Data",
                                                   "Via"};
  std::vector<Field> kept;
  for (const auto& field : fields) {
    const auto named = [&](std::string_view name) { return same_name(name, field.name); };
    if (std::none_of(apart.begin(), apart.end(), named)) kept.push_back(field);
  }
  std::sort(kept.begin(), kept.end(), [](const Field& a, const Field& b) {
    return std::tie(a.name, a.value) < std::tie(b.name, b.value);
  });
  return kept;
}

}  // namespace

Request charge(std::string_view key, std::string_view faults, std::string_view body) {
  Request request{.fields = {{"X-Tenant-Id", "acme"},
                             {"Content-Type", "application/json"},
                             {"Idempotency-Key", std::string(key)}},
                  .body = std::string(body)};
  return faults.empty() ? request : with(std::move(request), "X-Fault", faults);
}

Request with(Request request, std::string_view name, std::string_view value) {
  request.fields.push_back({std::string(name), std::string(value)});
  return request;
}

Request without(Request request, std::string_view name) {
  std::erase_if(request.fields, [&](const Field& field) { return same_name(field.name, name); });
  return request;
}

Response ask_until_settled(std::string_view address, const Request& request) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto answer = send_once(address, request);
    const bool running = answer.status == 0 ||
                         (answer.status == 409 && json_text(answer.body, "code") == "in_progress");
    if (!running || std::chrono::steady_clock::now() > give_up) return answer;
    back_off();
  }
}

testing::AssertionResult replays(const Response& first, const Response& replay) {
  const auto fail = [&](std::string_view what) {
    return testing::AssertionFailure()
           << what << "\nfirst " << first.status << " " << first.trouble << "\n"
           << first.raw << "\nreplay " << replay.status << " " << replay.trouble << "\n"
           << replay.raw;
  };
  if (first.status == 0 || replay.status != first.status) return fail("the status differs");
  if (replay.body != first.body) return fail("the body differs");
  if (comparable(replay.fields) != comparable(first.fields)) return fail("the fields differ");
  if (replay.get("Idempotent-Replayed") != "true") return fail("no Idempotent-Replayed: true");
  if (replay.get("Idempotency-Outcome") != "stored") return fail("no Idempotency-Outcome: stored");
  if (!replay.get("Idempotency-Expires")) return fail("no Idempotency-Expires");
  for (const auto* name : {"Idempotent-Replayed", "Idempotency-Outcome", "Idempotency-Expires"}) {
    if (replay.count(name) != 1) return fail(std::string(name) + " is there more than once");
  }
  return testing::AssertionSuccess();
}

std::vector<std::string> echoed(const Response& answer, std::string_view name) {
  std::vector<std::string> values;
  const auto json = parse_json(answer.body);
  if (!json) return values;
  for (const auto& field : (*json)["fields"].items) {
    if (field.items.size() == 2 && same_name(field.items[0].string, name)) {
      values.push_back(field.items[1].string);
    }
  }
  return values;
}

GatewayOptions Live::options(std::string upstream) const {
  return {.upstream = std::move(upstream), .store = dir_.path() / "idem.db", .flags = flags()};
}

void Live::SetUp() {
  IDEM_NEED_PROGRAM("idem");
  provider_ = std::make_unique<Provider>();
  ASSERT_TRUE(provider_->running());
  gateway_ = std::make_unique<Gateway>(options(provider_->address()));
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
}

}  // namespace idem::test
