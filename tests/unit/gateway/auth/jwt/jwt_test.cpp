#include "gateway/auth/jwt/jwt.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <idem/limits.hpp>
#include <map>

#include "support/temp_dir.hpp"
#include "support/token_maker.hpp"

/// Scope jwt:CLAIM as an attacker sees it who may write any token but has no key.
namespace idem::test {
namespace {

using namespace std::chrono_literals;
using gateway::JwtFault;
using gateway::JwtRules;
using gateway::JwtVerifier;
using Moment = std::chrono::sys_time<Millis>;

constexpr Moment now{Millis(1'800'000'000'000)};
constexpr const char* good = R"({"iss":"https://id.test","exp":1800000600,"tenant":"acme"})";

/// One key for all tests of an algorithm, because RSA's are slow to make; a second one of a
/// stranger.
// Not a std::string: GCC 14 warns of a dangling reference where an argument is a temporary.
const TokenMaker& maker(const char* algorithm, bool stranger = false) {
  static std::map<std::pair<std::string, bool>, TokenMaker> made;
  return made.try_emplace({algorithm, stranger}, algorithm).first->second;
}

class Jwt : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    const auto path = dir_.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  JwtRules rules(const std::string& algorithm) const {
    return {.algorithm = algorithm,
            .key_file = {},
            .jwks_file = {},
            .issuer = "https://id.test",
            .claim = "tenant"};
  }
  auto by_key(const std::string& algorithm, const std::string& text) const {
    auto asked = rules(algorithm);
    asked.key_file = file("key", text);
    return JwtVerifier::load(asked);
  }
  auto by_set(const std::string& algorithm, const std::string& text) const {
    auto asked = rules(algorithm);
    asked.jwks_file = file("jwks", text);
    return JwtVerifier::load(asked);
  }
  static std::string outcome(const std::shared_ptr<const JwtVerifier>& verifier,
                             std::string_view token, Moment at = now) {
    const auto holder = verifier->verify(token, at);
    if (holder) return holder->scope.substr(0, holder->scope.find('#'));
    static const char* const names[] = {"malformed", "algorithm", "unknown_key",
                                        "signature", "expired",   "not_yet_valid",
                                        "issuer",    "audience",  "claim"};
    EXPECT_FALSE(describe(holder.error()).empty());
    return std::string("!") + names[static_cast<int>(holder.error())];
  }

  TempDir dir_;
};

class JwtOf : public Jwt, public testing::WithParamInterface<const char*> {};

TEST_P(JwtOf, S09_a_token_signed_by_the_issuer_is_accepted) {
  const TokenMaker& issuer = maker(GetParam());
  const auto verifier = by_key(GetParam(), issuer.key_text());
  ASSERT_TRUE(verifier) << verifier.error();
  EXPECT_EQ(outcome(*verifier, issuer.token(good)), "acme");
  const auto set = by_set(GetParam(), R"({"keys":[)" + issuer.jwk(R"("kid":"a")") + "]}");
  ASSERT_TRUE(set) << set.error();
  EXPECT_EQ(outcome(*set, issuer.token(good, "a")), "acme");
}

TEST_P(JwtOf, S09_no_bit_of_it_can_be_changed) {
  const TokenMaker& issuer = maker(GetParam());
  const auto verifier = by_key(GetParam(), issuer.key_text());
  ASSERT_TRUE(verifier) << verifier.error();
  const std::string token = issuer.token(good);
  const auto payload_at = token.find('.') + 1;
  for (std::size_t i = 0; i < token.size(); i += 3) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    if (changed == token) continue;
    EXPECT_EQ(outcome(*verifier, changed).front(), '!') << i;
  }
  const std::string other =
      token.substr(0, payload_at) +
      base64url(R"({"iss":"https://id.test","exp":1800000600,"tenant":"globex"})") +
      token.substr(token.rfind('.'));
  EXPECT_EQ(outcome(*verifier, other), "!signature");
  EXPECT_EQ(outcome(*verifier, token.substr(0, token.rfind('.') + 1)), "!signature");
  EXPECT_EQ(outcome(*verifier, maker(GetParam(), true).token(good)), "!signature");
}

TEST_P(JwtOf, S09_only_the_configured_algorithm_is_accepted) {
  const TokenMaker& issuer = maker(GetParam());
  const auto verifier = by_key(GetParam(), issuer.key_text());
  ASSERT_TRUE(verifier) << verifier.error();
  for (const auto* other : {"none", "None", "NONE", "nOnE", "", "HS256", "HS384", "RS256", "RS512",
                            "PS256", "ES256", "EdDSA", "hs256", "rs256"}) {
    if (std::string_view(other) == GetParam()) continue;
    const std::string header = R"({"alg":")" + std::string(other) + "\"}";
    EXPECT_EQ(outcome(*verifier, issuer.sign(header, good)), "!algorithm") << other;
    EXPECT_EQ(outcome(*verifier, base64url(header) + '.' + base64url(good) + '.'), "!algorithm");
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, JwtOf,
                         testing::Values("RS256", "PS256", "ES256", "EdDSA", "HS256"),
                         [](const auto& each) { return std::string(each.param); });

// The best known forgery: the public key, which everybody has, as the secret of an HMAC.
TEST_F(Jwt, S09_a_public_key_is_never_a_secret) {
  for (const auto* algorithm : {"RS256", "ES256", "EdDSA"}) {
    const TokenMaker& issuer = maker(algorithm);
    const auto verifier = by_key(algorithm, issuer.key_text());
    ASSERT_TRUE(verifier) << verifier.error();
    for (const auto* claimed : {"HS256", algorithm}) {
      const std::string text =
          base64url(R"({"alg":")" + std::string(claimed) + "\"}") + '.' + base64url(good);
      const auto forged = text + '.' + base64url(hmac_sha256(issuer.key_text(), text));
      EXPECT_EQ(outcome(*verifier, forged).front(), '!') << algorithm << ' ' << claimed;
    }
    EXPECT_FALSE(by_key("HS256", issuer.key_text())) << "HS256 must not take a PEM file";
  }
}

TEST_F(Jwt, S09_a_key_serves_its_own_algorithm_only) {
  const TokenMaker &rsa = maker("RS256"), &ec = maker("ES256"), &ed = maker("EdDSA");
  const TokenMaker weak("RS256", 1024);
  EXPECT_FALSE(by_key("ES256", rsa.key_text()));
  EXPECT_FALSE(by_key("RS256", ec.key_text()));
  EXPECT_FALSE(by_key("PS256", ed.key_text()));
  EXPECT_FALSE(by_key("EdDSA", ec.key_text()));
  EXPECT_FALSE(by_key("RS256", weak.key_text()));
  EXPECT_FALSE(by_key("HS256", "short"));
  EXPECT_FALSE(by_key("none", rsa.key_text()));
  EXPECT_FALSE(by_key("", rsa.key_text()));
  EXPECT_FALSE(by_key("RS256", "no key"));
  EXPECT_FALSE(by_key("RS256", std::string(300'000, 'x')));
  auto nowhere = rules("RS256");
  nowhere.key_file = (dir_.path() / "nothing").string();
  const auto missing = JwtVerifier::load(nowhere);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().find(nowhere.key_file), std::string::npos);
}

TEST_F(Jwt, S09_time_is_looked_at) {
  const TokenMaker issuer("HS256");
  const auto strict = *by_key("HS256", issuer.key_text());
  auto lenient_rules = rules("HS256");
  lenient_rules.key_file = file("key", issuer.key_text());
  lenient_rules.leeway = 60s;
  const auto lenient = *JwtVerifier::load(lenient_rules);
  const auto with = [&](const std::string& times) {
    return issuer.token(R"({"iss":"https://id.test","tenant":"acme")" + times + "}");
  };
  const auto lasting = [&](const std::string& more) { return with(R"(,"exp":1800000600)" + more); };
  EXPECT_EQ(outcome(strict, with("")), "!expired") << "no exp";
  for (const auto* bad : {"null", "\"1800000600\"", "true", "[1800000600]", "{}", "-1", "1e300",
                          "1e12", "0", "1800000000", "1799999999.9"}) {
    EXPECT_EQ(outcome(strict, with(R"(,"exp":)" + std::string(bad))), "!expired") << bad;
  }
  EXPECT_EQ(outcome(strict, with(R"(,"exp":1800000000.5)")), "acme");
  EXPECT_EQ(outcome(strict, with(R"(,"exp":1.8000006e9)")), "acme");
  EXPECT_EQ(outcome(lenient, with(R"(,"exp":1799999940)")), "!expired");
  EXPECT_EQ(outcome(lenient, with(R"(,"exp":1799999941)")), "acme");
  for (const std::string name : {"nbf", "iat"}) {
    EXPECT_EQ(outcome(strict, lasting(",\"" + name + "\":1800000000")), "acme");
    EXPECT_EQ(outcome(strict, lasting(",\"" + name + "\":1800000001")), "!not_yet_valid");
    EXPECT_EQ(outcome(strict, lasting(",\"" + name + "\":\"0\"")), "!not_yet_valid");
    EXPECT_EQ(outcome(lenient, lasting(",\"" + name + "\":1800000060")), "acme");
    EXPECT_EQ(outcome(lenient, lasting(",\"" + name + "\":1800000061")), "!not_yet_valid");
  }
  EXPECT_EQ(strict->verify(issuer.token(good), now)->expires_at, Moment(Millis(1'800'000'600'000)));
  EXPECT_EQ(outcome(strict, issuer.token(good), now + 600s), "!expired");
}

TEST_F(Jwt, S09_issuer_audience_and_claim_must_fit) {
  const TokenMaker issuer("HS256");
  const auto plain = *by_key("HS256", issuer.key_text());
  auto meant = rules("HS256");
  meant.key_file = file("key", issuer.key_text());
  meant.audience = "pay";
  const auto audience = *JwtVerifier::load(meant);
  const auto of = [&](const std::string& claims) {
    return issuer.token(R"({"exp":1800000600,)" + claims + "}");
  };
  for (const auto* iss : {R"("tenant":"acme")", R"("iss":"https://id.test/","tenant":"acme")",
                          R"("iss":["https://id.test"],"tenant":"acme")",
                          R"("iss":"HTTPS://id.test","tenant":"acme")"}) {
    EXPECT_EQ(outcome(plain, of(iss)), "!issuer") << iss;
  }
  const std::string ours = R"("iss":"https://id.test","tenant":"acme")";
  EXPECT_EQ(outcome(plain, of(ours + R"(,"aud":"pay")")), "!audience");
  EXPECT_EQ(outcome(audience, of(ours)), "!audience");
  EXPECT_EQ(outcome(audience, of(ours + R"(,"aud":"pay")")), "acme");
  EXPECT_EQ(outcome(audience, of(ours + R"(,"aud":["x","pay"])")), "acme");
  for (const auto* aud : {"\"other\"", "[]", "{}", "\"\"", "[\"other\"]", "[\"pay\",1]", "null"}) {
    EXPECT_EQ(outcome(audience, of(ours + R"(,"aud":)" + aud)), "!audience") << aud;
  }
  const std::string long_name(limits::scope_bytes_max + 1, 'x');
  for (const std::string& value :
       {std::string("\"\""), std::string("1"), std::string("null"), std::string("{}"),
        std::string("[\"acme\"]"), std::string("true"), '"' + long_name + '"',
        std::string(R"("a\u0000b")"), std::string(R"("a\nb")"), std::string(R"("a\u007f")")}) {
    EXPECT_EQ(outcome(plain, of(R"("iss":"https://id.test","tenant":)" + value)), "!claim")
        << value;
  }
  EXPECT_EQ(outcome(plain, of(R"("iss":"https://id.test","a":{"tenant":"acme"})")), "!claim");
  EXPECT_EQ(outcome(plain, of(R"("iss":"https://id.test","Tenant":"acme")")), "!claim");
}

// Two readers of one text must not see two tokens.
TEST_F(Jwt, S09_an_ambiguous_token_is_refused) {
  const TokenMaker issuer("HS256");
  const auto verifier = *by_key("HS256", issuer.key_text());
  const std::string header = R"({"alg":"HS256"})";
  EXPECT_EQ(outcome(verifier, issuer.sign(header, good)), "acme");
  for (const auto* bad :
       {R"({"alg":"HS256","alg":"HS256"})", R"({"alg":"none","alg":"HS256"})",
        R"({"alg":"HS256","crit":["exp"]})", R"({"alg":"HS256","crit":["b64"],"b64":false})",
        R"({"alg":"HS256","cty":"JWT"})", R"({"alg":"HS256","zip":"DEF"})",
        R"({"alg":"HS256","kid":1})", R"({"alg":"HS256","typ":"dpop+jwt"})",
        R"({"alg":"HS256","typ":"logout+jwt"})", R"({"alg":"HS256","typ":7})", R"(["HS256"])",
        R"("HS256")", "", "{",
        R"({"alg":"HS256"} )"
        "x"}) {
    EXPECT_EQ(outcome(verifier, issuer.sign(bad, good)), "!malformed") << bad;
  }
  for (const auto* typ : {"JWT", "jwt", "application/jwt", "at+jwt", "application/at+JWT"}) {
    const auto typed = R"({"alg":"HS256","typ":")" + std::string(typ) + "\"}";
    EXPECT_EQ(outcome(verifier, issuer.sign(typed, good)), "acme") << typ;
  }
  for (const auto* bad :
       {R"({"iss":"https://id.test","exp":1800000600,"tenant":"acme","tenant":"globex"})",
        R"({"iss":"x","iss":"https://id.test","exp":1800000600,"tenant":"acme"})",
        R"({"iss":"https://id.test","exp":1800000600,"tenant":"acme","\u0074enant":"globex"})",
        R"({"iss":"https://id.test","exp":1800000600,"tenant":"acme","x":{"a":1,"a":1}})",
        "{\"iss\":\"https://id.test\",\"exp\":1800000600,\"tenant\":\"a\xff\"}", "[]", ""}) {
    EXPECT_EQ(outcome(verifier, issuer.sign(header, bad)), "!malformed") << bad;
  }
  const std::string token = issuer.sign(header, good);
  const std::string spellings[] = {token + "=",
                                   token + ".",
                                   "." + token,
                                   token + " ",
                                   token + "\n",
                                   token + "." + token + "..",
                                   token.substr(0, token.rfind('.')),
                                   "",
                                   "..",
                                   ".",
                                   std::string(limits::jwt_bytes_max + 1, 'A')};
  for (const auto& bad : spellings) EXPECT_EQ(outcome(verifier, bad), "!malformed") << bad;
}

TEST_F(Jwt, S09_claims_nest_as_deeply_as_the_limit_says) {
  const TokenMaker issuer("HS256");
  const auto verifier = *by_key("HS256", issuer.key_text());
  const auto nested = [&](std::size_t depth) {
    return issuer.token(R"({"iss":"https://id.test","exp":1800000600,"tenant":"acme","x":)" +
                        std::string(depth, '[') + std::string(depth, ']') + "}");
  };
  EXPECT_EQ(outcome(verifier, nested(limits::jwt_depth_max - 1)), "acme");
  EXPECT_EQ(outcome(verifier, nested(limits::jwt_depth_max)), "!malformed");
}

TEST_F(Jwt, S09_another_spelling_of_the_same_signature_is_refused) {
  const TokenMaker issuer("HS256");  // 32 bytes: the last letter has two bits that no byte needs.
  const auto verifier = *by_key("HS256", issuer.key_text());
  std::string token = issuer.token(good);
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const auto at = letters.find(token.back());
  token.back() = letters[at + 1];
  EXPECT_EQ(outcome(verifier, token), "!malformed");
}

TEST_F(Jwt, S09_too_large_a_token_is_refused_without_a_look_at_it) {
  const TokenMaker issuer("HS256");
  const auto verifier = *by_key("HS256", issuer.key_text());
  const auto padded = [&](std::size_t bytes) {
    return issuer.token(R"({"iss":"https://id.test","exp":1800000600,"tenant":"acme","x":")" +
                        std::string(bytes, 'x') + "\"}");
  };
  EXPECT_EQ(outcome(verifier, padded(5'000)), "acme");
  EXPECT_EQ(outcome(verifier, padded(7'000)), "!malformed");
}

TEST_F(Jwt, S09_keys_are_rotated_by_their_kid) {
  const TokenMaker old_key("ES256"), new_key("ES256");
  const TokenMaker& other = maker("RS256");
  const auto set_of = [](const std::string& keys) { return R"({"keys":[)" + keys + "]}"; };
  const std::string a = old_key.jwk(R"("kid":"a","use":"sig","alg":"ES256")");
  const std::string b = new_key.jwk(R"("kid":"b","key_ops":["verify"])");
  const std::string r = other.jwk(R"("kid":"r")");
  const auto both = by_set("ES256", set_of(a + ',' + r + ',' + b));
  ASSERT_TRUE(both) << both.error();
  EXPECT_EQ(outcome(*both, old_key.token(good, "a")), "acme");
  EXPECT_EQ(outcome(*both, new_key.token(good, "b")), "acme");
  EXPECT_EQ(outcome(*both, new_key.token(good, "a")), "!signature");
  EXPECT_EQ(outcome(*both, new_key.token(good, "c")), "!unknown_key");
  EXPECT_EQ(outcome(*both, new_key.token(good, "r")), "!unknown_key");
  EXPECT_EQ(outcome(*both, new_key.token(good)), "!unknown_key") << "two, and none is named";
  const auto only_new = by_set("ES256", set_of(b));
  ASSERT_TRUE(only_new) << only_new.error();
  EXPECT_EQ(outcome(*only_new, old_key.token(good, "a")), "!unknown_key");
  EXPECT_EQ(outcome(*only_new, new_key.token(good)), "acme");
}

TEST_F(Jwt, S09_a_key_set_that_is_in_doubt_is_not_used) {
  const TokenMaker key("ES256"), other("ES256"), secret("HS256");
  const auto set_of = [](const std::string& keys) { return R"({"keys":[)" + keys + "]}"; };
  const std::string bad[] = {
      "",
      "[]",
      "{}",
      R"({"keys":{}})",
      set_of(""),
      set_of("1"),
      set_of(key.jwk(R"("use":"enc")")),
      set_of(key.jwk(R"("alg":"ES384")")),
      set_of(key.jwk(R"("key_ops":["sign"])")),
      set_of(key.jwk(R"("kid":7)")),
      set_of(key.jwk(R"("kid":"a")") + ',' + other.jwk(R"("kid":"a")")),
      set_of(key.jwk(R"("kty":"EC")")),
      set_of(secret.jwk()),
      set_of(R"({"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"})"),
      set_of(R"({"kty":"EC","crv":"P-256","x":")" + base64url(std::string(32, '\1')) +
             R"(","y":")" + base64url(std::string(32, '\2')) + "\"}"),
  };
  for (const auto& text : bad) EXPECT_FALSE(by_set("ES256", text)) << text;
  EXPECT_FALSE(by_set("RS256", set_of(TokenMaker("RS256", 1024).jwk())));
  std::string many;
  for (std::size_t i = 0; i <= limits::jwt_keys_max; ++i) {
    many += (i > 0 ? "," : "") + key.jwk("\"kid\":\"" + std::to_string(i) + '"');
  }
  EXPECT_FALSE(by_set("ES256", set_of(many)));
}

TEST_F(Jwt, T33_two_issuers_never_share_a_scope) {
  const TokenMaker issuer("HS256");
  auto other_rules = rules("HS256");
  other_rules.key_file = file("key", issuer.key_text());
  other_rules.issuer = "https://other.test";
  const auto one = *by_key("HS256", issuer.key_text());
  const auto other = *JwtVerifier::load(other_rules);
  const auto mine = one->verify(issuer.token(good), now);
  const auto theirs = other->verify(
      issuer.token(R"({"iss":"https://other.test","exp":1800000600,"tenant":"acme"})"), now);
  ASSERT_TRUE(mine && theirs);
  EXPECT_NE(mine->scope, theirs->scope);
  EXPECT_TRUE(mine->scope.starts_with("acme#")) << mine->scope;
}

}  // namespace
}  // namespace idem::test
