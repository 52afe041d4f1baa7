#include <gtest/gtest.h>

#include "support/scripted_live.hpp"

/// T36: whether another tenant has a record under a key, and in which state, changes no byte of
/// what is answered. Not by a clock: equal answers are what a test can prove on a shared machine.
namespace idem::test {
namespace {

/// An answer without what differs between any two moments.
std::string shape(const Response& answer) {
  std::string text = std::to_string(answer.status) + ' ' + answer.reason + '\n';
  for (const auto& field : answer.fields) {
    text += field.name + ": ";
    const bool moment =
        same_name(field.name, "Date") || same_name(field.name, "Idempotency-Expires");
    text += (moment ? std::string("...") : field.value) + '\n';
  }
  return text + answer.body;
}

Request of(std::string tenant, Request request) {
  return with(without(std::move(request), "X-Tenant-Id"), "X-Tenant-Id", tenant);
}

class OtherTenant : public Scripted {};

TEST_F(OtherTenant, T36_its_records_are_as_if_they_were_not) {
  Gate gate;
  start([&gate](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target() == "/held" &&
          find_field(request->head.fields, "X-Tenant-Id") == "acme" &&
          find_field(request->head.fields, "Idempotency-Key") == "running" && !gate.wait()) {
        return;
      }
      const bool broken = request->target() == "/broken";
      if (broken && find_field(request->head.fields, "X-Tenant-Id") == "acme") return;
      connection.write_answer("same for everybody");
    }
  });
  const auto at = [](std::string target, std::string_view key, std::string_view body) {
    auto request = charge(key, {}, body);
    request.target = std::move(target);
    return request;
  };
  const std::string asked = R"({"amount":1})";
  ASSERT_EQ(ask(of("acme", at("/held", "stored", asked))).status, 200);
  ASSERT_EQ(ask(of("acme", at("/broken", "unknown", asked))).status, 502);
  Connection running(gateway_->address());
  ASSERT_TRUE(running.send(of("acme", at("/held", "running", asked))));
  ASSERT_TRUE(upstream_->wait_for_requests(3));
  // The rest means something only because acme's own second request finds each record.
  EXPECT_EQ(ask(of("acme", at("/held", "stored", asked))).get("Idempotent-Replayed"), "true");
  EXPECT_TRUE(is_problem(ask(of("acme", at("/broken", "unknown", asked))), 409, "outcome_unknown"));
  EXPECT_TRUE(is_problem(ask(of("acme", at("/held", "running", asked))), 409, "in_progress"));

  int tenants = 0;
  const std::pair<const char*, const char*> records[] = {
      {"/held", "stored"}, {"/broken", "unknown"}, {"/held", "running"}};
  for (const auto& [target, key] : records) {
    for (const std::string& body :
         {asked, std::string(R"({"amount":2})"), std::string("no json")}) {
      const std::string tenant = "globex-" + std::to_string(++tenants);
      const auto known = ask(of(tenant, at(target, key, body)));
      const auto unused = ask(of(tenant, at(target, std::string("un") + key, body)));
      EXPECT_EQ(known.status, 200) << target << ' ' << key << ' ' << body;
      EXPECT_EQ(shape(known), shape(unused)) << target << ' ' << key << ' ' << body;
    }
    const auto refused = [&](const char* tenant, std::string_view used) {
      return shape(ask(of(tenant, with(at(target, used, asked), "Idempotency-Key", "second"))));
    };
    EXPECT_EQ(refused("globex", key), refused("globex", "never"));
    EXPECT_EQ(refused("acme", key), refused("globex", key));
    EXPECT_EQ(shape(ask(without(at(target, key, asked), "X-Tenant-Id"))),
              shape(ask(without(at(target, "never", asked), "X-Tenant-Id"))));
  }
  gate.open();
  EXPECT_EQ(running.read_response().status, 200);
}

}  // namespace
}  // namespace idem::test
