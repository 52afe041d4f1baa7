#include "core/evidence/event_source.hpp"
#include "core/bytes/base64.hpp"
#include "core/bytes/digests.hpp"

#include <idem/limits.hpp>
#include <idem/webhook.hpp>

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <memory>
#include <random>

namespace idem {
namespace {

using Scheme = EventSignature::Scheme;
using namespace std::chrono_literals;

constexpr std::int64_t now = 1'800'000'000;
constexpr std::string_view body = R"({"type":"charge.succeeded","data":{"id":"ch_1"}})";
const std::string secret_text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

EventSignature standard() {
  return {.scheme = Scheme::standard, .secrets = {*event_secret(Scheme::standard, secret_text)}};
}

std::string mac_of(std::string_view key, std::string_view message) {
  return to_hex(hmac_sha256(key, message).value_or(Digest{}));
}

/// OpenSSL refuses every algorithm while one lives, as where its configuration forbids them.
class NoAlgorithms {
 public:
  NoAlgorithms() { EXPECT_EQ(EVP_set_default_properties(nullptr, "provider=none"), 1); }
  ~NoAlgorithms() { EXPECT_EQ(EVP_set_default_properties(nullptr, ""), 1); }
  NoAlgorithms(const NoAlgorithms&) = delete;
  NoAlgorithms& operator=(const NoAlgorithms&) = delete;
};

TEST(EventSignature, the_mac_is_the_one_of_the_rfc) {
  // RFC 4231, test case 2.
  EXPECT_EQ(mac_of("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(EventSignature, S19_standard_webhooks_with_any_of_several_secrets) {
  const std::string time = std::to_string(now);
  const std::string other = "whsec_" + to_base64(std::string(32, 'o'));
  const auto signature = webhook_signature({other, secret_text}, "msg_1", now, std::string(body));
  ASSERT_TRUE(signature);
  SignedHead head{"msg_1", time, *signature};
  EXPECT_TRUE(check_signature(standard(), head, body, now));
  EventSignature both = standard();
  both.secrets.insert(both.secrets.begin(), std::string(24, 'x'));
  EXPECT_TRUE(check_signature(both, head, body, now)) << "while secrets change over";
  head.id = "msg_2";
  EXPECT_FALSE(check_signature(standard(), head, body, now));
  head.id = {};
  EXPECT_FALSE(check_signature(standard(), head, body, now));
}

TEST(EventSignature, T63_whatever_is_changed_is_forged) {
  const std::string time = std::to_string(now);
  const auto good = *webhook_signature({secret_text}, "msg_1", now, std::string(body));
  std::mt19937 random(11);
  for (int i = 0; i < 2'000; ++i) {
    std::string id = "msg_1";
    std::string at = time;
    std::string signature = good;
    std::string text(body);
    std::string& broken = *std::array{&id, &at, &signature, &text}[random() % 4];
    const std::string before = broken;
    broken[random() % broken.size()] = static_cast<char>(random() % 256);
    if (broken == before) continue;
    EXPECT_FALSE(check_signature(standard(), {id, at, signature}, text, now))
        << id << " " << at << " " << signature << " " << text;
  }
  EXPECT_FALSE(check_signature(standard(), {"msg_1", time, ""}, body, now));
  EXPECT_FALSE(check_signature({.scheme = Scheme::standard}, {"msg_1", time, "v1,"}, body, now))
      << "without a secret nothing is believed";
}

TEST(EventSignature, S19_times_more_than_five_minutes_away_are_refused) {
  for (const auto away : {-301, -300, 0, 300, 301}) {
    const std::int64_t at = now + away;
    const auto signature = *webhook_signature({secret_text}, "m", at, std::string(body));
    const std::string time = std::to_string(at);
    EXPECT_EQ(check_signature(standard(), {"m", time, signature}, body, now).has_value(),
              std::abs(away) <= 300)
        << away;
  }
}

TEST(EventSignature, S19_one_field_with_time_and_signatures) {
  const EventSignature by{.scheme = Scheme::stripe, .secrets = {"sixteen bytes are enough"}};
  const std::string time = std::to_string(now);
  const std::string right = mac_of(by.secrets[0], time + "." + std::string(body));
  const auto check = [&](const std::string& field) {
    return check_signature(by, {{}, {}, field}, body, now).has_value();
  };
  EXPECT_TRUE(check("t=" + time + ",v1=" + right));
  EXPECT_TRUE(check("t=" + time + ",v0=00,v1=" + std::string(64, '0') + ",v1=" + right));
  EXPECT_FALSE(check("t=" + time + ",v0=" + right));
  EXPECT_FALSE(check("v1=" + right));
  EXPECT_FALSE(check("t=" + std::to_string(now - 301) + ",v1=" + right));
  EXPECT_FALSE(check("t=" + std::to_string(now - 1) + ",v1=" + right)) << "the time is signed";
  EXPECT_FALSE(check("t=" + std::to_string(now - 1) + ",t=" + time + ",v1=" + right));
}

TEST(EventSignature, S19_a_mac_of_the_body_in_one_field) {
  const EventSignature by{
      .scheme = Scheme::hmac, .secrets = {"sixteen bytes are enough"}, .prefix = "sha256="};
  const std::string hex = mac_of(by.secrets[0], body);
  const auto check = [&](const std::string& field) {
    return check_signature(by, {{}, {}, field}, body, now).has_value();
  };
  EXPECT_TRUE(check("sha256=" + hex));
  EXPECT_TRUE(check("sha256=" + to_base64(view_of(*hmac_sha256(by.secrets[0], body)))));
  EXPECT_FALSE(check(hex));
  EXPECT_FALSE(check("sha256="));
  EXPECT_FALSE(check("sha256=" + hex.substr(1)));
}

TEST(EventSignature, S19_a_mac_that_openssl_refuses_to_make_equals_nothing) {
  const std::string time = std::to_string(now);
  const std::string secret = "sixteen bytes are enough";
  const std::pair<EventSignature, std::string> empty_signatures[] = {
      {standard(), "v1,"},
      {{.scheme = Scheme::stripe, .secrets = {secret}}, "t=" + time + ",v1="},
      {{.scheme = Scheme::hmac, .secrets = {secret}, .prefix = "sha256="}, "sha256="}};
  for (const bool refuses : {true, false}) {
    const auto none = refuses ? std::make_unique<NoAlgorithms>() : nullptr;
    EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?").has_value(), !refuses);
    EXPECT_EQ(webhook_signature({secret_text}, "m", now, "{}").has_value(), !refuses);
    for (const auto& [by, field] : empty_signatures) {
      const auto checked = check_signature(by, {"m", time, field}, body, now);
      ASSERT_FALSE(checked);
      EXPECT_EQ(checked.error().contains("OpenSSL refuses"), refuses) << checked.error();
    }
  }
}

TEST(EventSignature, short_secrets_are_none) {
  EXPECT_FALSE(event_secret(Scheme::hmac, "short"));
  EXPECT_FALSE(event_secret(Scheme::standard, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
  EXPECT_FALSE(event_secret(Scheme::standard, "whsec_AAAA"));
}

EventSource source() {
  return {.name = "bank",
          .signature = standard(),
          .id = "",
          .operation = "/data/operation",
          .reference = "/data/id",
          .fence = "/data/fence",
          .says = {.found = {*ResponseMatcher::parse("/type=charge.succeeded")},
                   .failed = {*ResponseMatcher::parse("/type=charge.failed")}},
          .rebuild = {.found_status = 201, .body = "/data"}};
}

TEST(EventSource, reads_the_fields_of_an_event) {
  const auto event = read_event(source(), "msg_1",
                                R"({"type":"charge.succeeded","data":{"id":"ch_1",)"
                                R"("operation":"000102030405060708090a0b0c0d0e0f","fence":7}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->id, "msg_1");
  EXPECT_EQ(event->finding, Finding::found);
  EXPECT_EQ(event->fence, 7u);
  EXPECT_EQ(event->reference, "ch_1");
  ASSERT_TRUE(event->operation);
  EXPECT_EQ(event->operation->bytes[15], 15);
  ASSERT_TRUE(event->response);
  EXPECT_EQ(event->response->status, 201);
  EXPECT_EQ(read_event(source(), "m", R"({"type":"charge.failed"})")->finding, Finding::failed);
  EXPECT_EQ(read_event(source(), "m", R"({"type":"ping"})")->finding, Finding::later);
  EXPECT_FALSE(read_event(source(), "m", R"({"data":{"operation":{"a":1}}})")->operation);
  EXPECT_FALSE(read_event(source(), "m", "nothing"));
  EXPECT_TRUE(read_event(source(), "m", R"({"type":"ping","size":1e400})")) << "it is JSON";
  EXPECT_FALSE(read_event(source(), "", "{}"));
  EventSource named = source();
  named.id = "/id";
  EXPECT_EQ(read_event(named, "m", R"({"id":"evt_1"})")->id, "evt_1");
  EXPECT_FALSE(read_event(named, "m", R"({"id":null})"));
  EXPECT_FALSE(read_event(named, "m", R"({"id":")" + std::string(256, 'i') + "\"}"));
}

TEST(EventSource, S19_a_report_of_execution_stays) {
  const auto line = [](std::optional<Fence> fence, const std::string& source,
                       const std::string& said) {
    return EvidenceEntry{.fence = fence,
                         .source = source,
                         .evidence = R"({"said":")" + said + R"("})",
                         .reason = {},
                         .before = State::unknown,
                         .after = State::unknown};
  };
  EXPECT_EQ(reported_finding({line(7, "event:bank", "found")}, 7), Finding::found);
  EXPECT_EQ(reported_finding({line(7, "poll:bank", "found")}, 7), Finding::found);
  EXPECT_EQ(reported_finding({line(std::nullopt, "event:bank", "found")}, 7), Finding::found)
      << "it may be this one";
  EXPECT_FALSE(reported_finding({line(6, "event:bank", "found")}, 7));
  EXPECT_EQ(reported_finding({line(7, "event:bank", "failed")}, 7), Finding::failed);
  EXPECT_EQ(reported_finding(
                {line(7, "poll:bank", "found"), line(std::nullopt, "event:bank", "failed")}, 7),
            Finding::found);
  EXPECT_EQ(reported_finding(
                {line(std::nullopt, "event:bank", "failed"), line(7, "poll:bank", "found")}, 7),
            Finding::found);
  EXPECT_FALSE(reported_finding({line(7, "poll:bank", "not_there")}, 7));
  EXPECT_FALSE(reported_finding({line(7, "operator", "found")}, 7));
  auto applied = line(7, "event:bank", "found");
  applied.applied = true;
  EXPECT_FALSE(reported_finding({applied}, 7));
  EXPECT_FALSE(kept_answer({line(std::nullopt, "event:bank", "found")}, 7));
  ASSERT_TRUE(kept_answer({line(7, "poll:bank", "found")}, 7));
  EXPECT_FALSE(kept_answer({line(7, "poll:bank", "found")}, 7)->response);
}

TEST(EventSource, S19_a_kept_event_comes_back_as_it_was) {
  ProviderEvent event{.id = "msg \"1\"", .finding = Finding::found};
  event.response = StoredResponse{201, {{"Content-Type", "a/b"}, {"X", "say \"hi\" \xc3\xa9"}}, {}};
  for (int c = 0; c < 256; ++c) event.response->body += static_cast<char>(c);
  EvidenceEntry line{.fence = 7,
                     .source = "event:bank",
                     .evidence = evidence_of(event, "body", true),
                     .reason = {},
                     .before = State::in_progress,
                     .after = State::in_progress};
  EXPECT_TRUE(is_about(line, "event:bank", "msg \"1\""));
  EXPECT_FALSE(is_about(line, "event:bank", "msg 1"));
  EXPECT_FALSE(is_about(line, "event:other", "msg \"1\""));
  const std::vector<EvidenceEntry> log{{}, line};
  const auto kept = kept_answer(log, 7);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->response, event.response);
  EXPECT_EQ(kept->said, Finding::found);
  EXPECT_EQ(kept->line, &log[1]);
  EXPECT_FALSE(kept->is_contradicted);
  EXPECT_FALSE(kept_answer(log, 8)) << "another attempt's";
  ProviderEvent declined{.id = "msg 2", .finding = Finding::failed};
  declined.response = StoredResponse{402, {}, "declined"};
  EvidenceEntry other = line;
  other.evidence = evidence_of(declined, "body", true);
  for (const auto& both : {std::vector{line, other}, std::vector{other, line}}) {
    const auto of_two = kept_answer(both, 7);
    ASSERT_TRUE(of_two);
    ASSERT_TRUE(of_two->response);
    EXPECT_EQ(of_two->response->status, 201) << "money moved";
    EXPECT_TRUE(of_two->is_contradicted);
  }
  EXPECT_EQ(kept_answer({other, other}, 7)->response->status, 402);
  EXPECT_FALSE(kept_answer({other, other}, 7)->is_contradicted);
  EvidenceEntry mute = line;
  mute.evidence = evidence_of(event, "body", false);
  for (const auto& both : {std::vector{mute, other}, std::vector{other, mute}}) {
    const auto of_two = kept_answer(both, 7);
    ASSERT_TRUE(of_two);
    EXPECT_FALSE(of_two->response) << "money moved, and a refusal must not be its answer";
    EXPECT_TRUE(of_two->is_contradicted);
  }
  for (const auto& both : {std::vector{mute, line}, std::vector{line, mute}}) {
    ASSERT_TRUE(kept_answer(both, 7)->response);
    EXPECT_FALSE(kept_answer(both, 7)->is_contradicted);
  }
  line.applied = true;
  EXPECT_FALSE(kept_answer({line}, 7));
  line.applied = false;
  line.source = "operator";
  EXPECT_FALSE(kept_answer({line}, 7)) << "a person's line is no event";
}

}  // namespace
}  // namespace idem
