#include "admin/login/sessions.hpp"

#include <idem/console_limits.hpp>

#include <gtest/gtest.h>

namespace idem::admin {
namespace {

using namespace std::chrono_literals;

const MonotonicTime start = MonotonicTime() + 1h;
Caller ada() { return {"ada", Role::support, sha256("token"), "token"}; }

TEST(Sessions, are_found_by_their_ids_alone) {
  Sessions sessions;
  const auto id = sessions.begin(ada(), start);
  const auto other = sessions.begin({"bob", Role::viewer, {}, "token"}, start);
  EXPECT_EQ(id.size(), 64U);
  EXPECT_NE(id, other);
  const Session* const found = sessions.find(id, start);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->caller.name, "ada");
  EXPECT_EQ(found->caller.role, Role::support);
  EXPECT_TRUE(found->caller.in_session);
  EXPECT_EQ(found->csrf.size(), 64U);
  EXPECT_NE(found->csrf, sessions.find(other, start)->csrf);
  EXPECT_NE(found->csrf, id);
  EXPECT_EQ(sessions.find("", start), nullptr);
  EXPECT_EQ(sessions.find(id.substr(1), start), nullptr);
  sessions.end(id);
  sessions.end("no such id");
  EXPECT_EQ(sessions.find(id, start), nullptr);
  EXPECT_NE(sessions.find(other, start), nullptr);
}

TEST(Sessions, end_without_use_and_after_a_shift) {
  Sessions sessions;
  const auto idle = sessions.begin(ada(), start);
  const auto used = sessions.begin(ada(), start);
  const auto pause = std::chrono::minutes(limits::console_idle_max) / 2;
  auto now = start;
  while (now + pause < start + limits::console_session_max) {
    now += pause;
    ASSERT_NE(sessions.find(used, now), nullptr);
  }
  EXPECT_EQ(sessions.find(idle, start + limits::console_idle_max), nullptr);
  EXPECT_EQ(sessions.find(used, start + limits::console_session_max), nullptr);
}

Caller with_token(int number) {
  return {"bob", Role::viewer, sha256("token " + std::to_string(number)), "token"};
}

TEST(Sessions, with_too_many_the_one_used_least_recently_ends) {
  Sessions sessions;
  const auto first = sessions.begin(with_token(0), start);
  const auto second = sessions.begin(with_token(1), start);
  const auto most = static_cast<int>(limits::console_sessions_max);
  for (int i = 2; i < most; ++i) sessions.begin(with_token(i), start);
  ASSERT_NE(sessions.find(first, start + 1s), nullptr);
  sessions.begin(with_token(most), start + 2s);
  EXPECT_NE(sessions.find(first, start + 3s), nullptr);
  EXPECT_EQ(sessions.find(second, start + 3s), nullptr);
}

TEST(Sessions, many_of_one_token_end_only_its_own) {
  Sessions sessions;
  const auto other = sessions.begin(with_token(1), start);
  const auto oldest = sessions.begin(ada(), start);
  const auto next = sessions.begin(ada(), start);
  for (std::size_t i = 2; i <= limits::console_sessions_of_token_max; ++i) {
    sessions.begin(ada(), start);
  }
  EXPECT_EQ(sessions.find(oldest, start), nullptr);
  EXPECT_NE(sessions.find(next, start), nullptr);
  EXPECT_NE(sessions.find(other, start), nullptr);
}

TEST(Sessions, a_code_is_good_once_and_not_for_long) {
  Sessions sessions;
  const auto code = sessions.make_code(ada(), start);
  EXPECT_FALSE(sessions.redeem("", start));
  EXPECT_FALSE(sessions.find(code, start)) << "a code is no session";
  const auto caller = sessions.redeem(code, start + limits::console_code_max - 1ms);
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->name, "ada");
  EXPECT_FALSE(sessions.redeem(code, start));
  const auto late = sessions.make_code(ada(), start);
  EXPECT_FALSE(sessions.redeem(late, start + limits::console_code_max));
  EXPECT_FALSE(sessions.redeem(late, start)) << "late is used, too";
}

TEST(Sessions, with_too_many_codes_the_oldest_goes) {
  Sessions sessions;
  const auto oldest = sessions.make_code(with_token(0), start);
  const auto next = sessions.make_code(with_token(1), start + 1ms);
  const auto most = static_cast<int>(limits::console_codes_max);
  for (int i = 2; i <= most; ++i) sessions.make_code(with_token(i), start + 2ms);
  EXPECT_FALSE(sessions.redeem(oldest, start + 3ms));
  EXPECT_TRUE(sessions.redeem(next, start + 3ms));
}

TEST(Sessions, many_codes_of_one_token_cancel_only_its_own) {
  Sessions sessions;
  const auto other = sessions.make_code(with_token(1), start);
  const auto oldest = sessions.make_code(ada(), start + 1ms);
  const auto next = sessions.make_code(ada(), start + 2ms);
  for (std::size_t i = 2; i <= limits::console_codes_of_token_max; ++i) {
    sessions.make_code(ada(), start + 3ms);
  }
  EXPECT_FALSE(sessions.redeem(oldest, start + 4ms));
  EXPECT_TRUE(sessions.redeem(next, start + 4ms));
  EXPECT_TRUE(sessions.redeem(other, start + 4ms));
}

TEST(SessionCookie, has_the_port_in_its_name) {
  EXPECT_EQ(cookie_name_at("127.0.0.1:9901"), "__Host-idem-9901");
  EXPECT_EQ(cookie_name_at("[::1]:9901"), "__Host-idem-9901");
  EXPECT_EQ(cookie_name_at("[::1]"), "__Host-idem");
  EXPECT_EQ(cookie_name_at("idem.example"), "__Host-idem");
}

TEST(SessionCookie, is_read_where_it_stands_once) {
  const auto read = [](std::string_view field) { return cookie_in(field, "__Host-idem-1"); };
  EXPECT_EQ(read("__Host-idem-1=abc"), "abc");
  EXPECT_EQ(read("a=b; __Host-idem-1=abc;c=d"), "abc");
  EXPECT_EQ(read(" __Host-idem-1 = abc "), "abc");
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read(";;=;__Host-idem-1"));
  EXPECT_FALSE(read("__Host-idem-12=abc; x__Host-idem-1=abc"));
  EXPECT_FALSE(read("__Host-idem-1=abc; __Host-idem-1=def")) << "which one is it?";
}

TEST(SessionCookie, belongs_to_the_host_and_no_script_reads_it) {
  EXPECT_EQ(session_cookie("__Host-idem-1", "abc"),
            "__Host-idem-1=abc; Path=/; Secure; HttpOnly; SameSite=Strict");
  EXPECT_EQ(session_cookie("__Host-idem-1", ""),
            "__Host-idem-1=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");
}

}  // namespace
}  // namespace idem::admin
