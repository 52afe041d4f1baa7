#include "check/secrets.hpp"

#include <gtest/gtest.h>

/// What no report and no message may show.
namespace idem::check {
namespace {

Spec spec_with_secrets() {
  Spec spec;
  spec.path = "/p?api_key=inquery&page=2";
  spec.secrets = {"env-secret", "env-secret-longer"};
  spec.headers = {{"Authorization", "Bearer literal-token"}, {"X-Plain", "hello"}};
  spec.slow = Variation{.body = {}, .query = {}, .headers = {{"X-Api-Token", "slow-token"}}};
  spec.effects = Spec::Effects{.url = "http://127.0.0.1/c?token=inurl",
                               .command = {},
                               .pointer = {},
                               .headers = {{"Cookie", "session=abcdef; theme=dark"}},
                               .settle = {}};
  return spec;
}

TEST(CheckSecrets, values_of_the_file_are_masked_the_longest_first) {
  const Secrets secrets(spec_with_secrets());
  EXPECT_EQ(secrets.masked("env-secret-longer env-secret"), "*** ***");
  EXPECT_EQ(secrets.masked("Authorization: Bearer literal-token"), "Authorization: Bearer ***");
  EXPECT_EQ(secrets.masked(R"({"echo":"literal-token"})"), R"({"echo":"***"})");
  EXPECT_EQ(secrets.masked("slow-token abcdef inurl hello"), "*** *** *** hello");
  EXPECT_EQ(secrets.masked("GET /p?api_key=inquery&page=2"), "GET /p?api_key=***&page=2");
}

TEST(CheckSecrets, cookies_of_an_answer_are_masked_and_its_attributes_stay) {
  const Secrets secrets(spec_with_secrets());
  EXPECT_EQ(secrets.masked_answer("HTTP/1.1 103 X\r\nLink: a\r\n\r\nHTTP/1.1 201 X\r\n"
                                  "Set-Cookie: sid=geheim; Path=/\r\nX-Token: t\r\n\r\nsid=x"),
            "HTTP/1.1 103 X\r\nLink: a\r\n\r\nHTTP/1.1 201 X\r\n"
            "Set-Cookie: sid=***; Path=/\r\nX-Token: ***\r\n\r\nsid=x");
  EXPECT_EQ(secrets.masked_answer("HTTP/1.1 2"), "HTTP/1.1 2");
}

TEST(CheckSecrets, a_text_of_elsewhere_in_a_sentence_is_short_and_printable) {
  const Secrets secrets(spec_with_secrets());
  EXPECT_EQ(secrets.in_sentence("psql postgres://u:p@db/x \x1b[31m env-secret"),
            "psql postgres://***@db/x \\x1b[31m ***");
  EXPECT_LT(secrets.in_sentence(std::string(900'000, 'a')).size(), 310U);
  EXPECT_EQ(without_user("http://a@b/c@d"), "http://***@b/c@d");
  EXPECT_EQ(without_user("http://b/c@d"), "http://b/c@d");
}

}  // namespace
}  // namespace idem::check
