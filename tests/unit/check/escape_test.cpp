#include "check/report/escape.hpp"

#include <gtest/gtest.h>

/// What the API sent, made harmless for terminals, browsers and parsers.
namespace idem::check {
namespace {

using namespace std::string_literals;

TEST(CheckEscape, shows_what_cannot_be_seen) {
  EXPECT_EQ(printable("a\x1b[2J\x7F\0b"s), "a\\x1b[2J\\x7f\\x00b");
  EXPECT_EQ(printable("\xFF\xC3(\xC3\xA9"), "\\xff\\xc3(\xC3\xA9");
  EXPECT_EQ(printable("\xC2\x9B \xE2\x80\xAE \xEF\xBB\xBF"), "\\u{9b} \\u{202e} \\u{feff}");
  EXPECT_EQ(printable(" a\r\n\tb  c\n"), "a b c");
  EXPECT_EQ(printable("a\r\nb\rc\td\n", LineEnds::plain), "a\nb\\x0dc\td\n");
  EXPECT_EQ(printable("a\r\nb\rc\td\n", LineEnds::kept), "a\r\nb\rc\td\n");
}

TEST(CheckEscape, markup_begins_none) {
  EXPECT_EQ(markup("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
  EXPECT_EQ(marked_markup("<\x1b>\\x1b"), "&lt;<i>\\x1b</i>&gt;\\x1b");
}

TEST(CheckEscape, a_uri_has_only_what_it_may_have) {
  EXPECT_EQ(uri_text("http://a:1/b?c=%20#d"), "http://a:1/b?c=%20#d");
  EXPECT_EQ(uri_text("http://[::1]:1/[%2G%2f##"), "http://[::1]:1/%5B%252G%2f#%23");
  EXPECT_EQ(uri_text("/<\x1b\xFF {"), "/%3C%1B%FF%20%7B");
}

TEST(CheckEscape, a_beginning_cuts_no_character) {
  EXPECT_EQ(beginning_of("ab\xC3\xA9", 3), "ab");
  EXPECT_EQ(beginning_of("ab\xC3\xA9", 4), "ab\xC3\xA9");
  EXPECT_EQ(beginning_of("\xF0\x9F\x98\x80", 3), "");
  EXPECT_EQ(excerpt_of("abcdef", 4), "abcd\n[2 more bytes]");
  EXPECT_EQ(excerpt_of("abcdef", 6), "abcdef");
}

}  // namespace
}  // namespace idem::check
