#include "core/key/key_time.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <idem/limits.hpp>

#include <cctype>
#include <string>

#include "core/bytes/ascii.hpp"
#include "core/bytes/rfc3339.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;

// RFC 9562 A.6: 2022-02-22T19:22:22.000Z.
constexpr std::string_view uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
// 2016-07-30T23:54:10.259Z, of the ULID specification.
constexpr std::string_view ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

std::string time_of(std::string_view key) {
  const auto time = time_of_key(key);
  return time ? to_rfc3339(*time) : "none";
}

TEST(KeyTime, S08_a_uuid_of_version_7_carries_its_time) {
  EXPECT_EQ(time_of(uuid), "2022-02-22T19:22:22.000Z");
  EXPECT_EQ(time_of(upper_case(uuid)), "2022-02-22T19:22:22.000Z");
  EXPECT_EQ(time_of("00000000-0000-7000-8000-000000000000"), "1970-01-01T00:00:00.000Z");
  EXPECT_TRUE(time_of_key("ffffffff-ffff-7fff-bfff-ffffffffffff"));
  for (const char* variant : {"8", "9", "a", "b", "A", "B"}) {
    EXPECT_NE(time_of(std::string(uuid).replace(19, 1, variant)), "none") << variant;
  }
}

TEST(KeyTime, S08_other_uuids_and_texts_like_them_say_nothing) {
  for (const std::string_view key :
       {"", "k", "919108f7-52d1-4320-9bac-f847db4148a8", "017f22e279b07cc398c4dc0c0c07398f",
        "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}", "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "017f22e2-79b0-6cc3-98c4-dc0c0c07398f", "1ec9414c-232a-6b00-b3c8-9f6bdeced846",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0",
        "017f22e279-b0-7cc3-98c4-dc0c0c07398f"}) {
    EXPECT_EQ(time_of(key), "none") << key;
  }
  for (const char* variant : {"0", "7", "c", "f"}) {
    EXPECT_EQ(time_of(std::string(uuid).replace(19, 1, variant)), "none") << variant;
  }
}

TEST(KeyTime, S08_a_ulid_carries_its_time) {
  EXPECT_EQ(time_of(ulid), "2016-07-30T23:54:10.259Z");
  EXPECT_EQ(time_of(lower_case(ulid)), "2016-07-30T23:54:10.259Z");
  EXPECT_EQ(time_of("0000000000000000000000000Z"), "1970-01-01T00:00:00.000Z");
  EXPECT_TRUE(time_of_key("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"));
}

TEST(KeyTime, S08_texts_like_ulids_say_nothing) {
  for (const std::string_view key :
       {"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ", "01ARZ3NDEKTSV4RRFFQ69G5FA",
        "01ARZ3NDEKTSV4RRFFQ69G5FAVX", "01ARZ3NDEKTSV4RRFFQ69G5FA-", "20241122203045000000000001",
        "00000000000000000000000000"}) {
    EXPECT_EQ(time_of(key), "none") << key;
  }
  for (const char alias : {'I', 'L', 'O', 'U', 'i', 'l', 'o', 'u'}) {
    EXPECT_EQ(time_of(std::string(ulid).replace(25, 1, 1, alias)), "none") << alias;
  }
}

// Each byte of each, replaced by each other byte: the time changes, or there is none, or the byte
// was not the time's.
TEST(KeyTime, S08_every_changed_byte_is_read_correctly) {
  int none = 0;
  int same = 0;
  int other = 0;
  for (const std::string_view key : {uuid, ulid}) {
    const auto original = time_of_key(key);
    for (std::size_t at = 0; at < key.size(); ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed(key);
        changed[at] = static_cast<char>(byte);
        const auto time = time_of_key(changed);
        const bool is_equal =
            std::tolower(byte) == std::tolower(static_cast<unsigned char>(key[at]));
        const bool is_time = at < (key.size() == 36 ? 13U : 10U);
        if (is_equal) {
          EXPECT_EQ(time, original) << changed;
        }
        if (!is_equal && is_time) {
          EXPECT_NE(time, original) << changed;
        }
        if (!is_time && time) {
          EXPECT_EQ(time, original) << changed;
        }
        ++(!time ? none : time == original ? same : other);
      }
    }
  }
  EXPECT_GT(none, 0);
  EXPECT_GT(same, 0);
  EXPECT_GT(other, 0);
}

TEST(ImfFixdate, S08_is_read_as_it_is_written) {
  EXPECT_EQ(to_rfc3339(parse_imf_fixdate("Sun, 06 Nov 1994 08:49:37 GMT").value()),
            "1994-11-06T08:49:37.000Z");
  EXPECT_EQ(to_rfc3339(parse_imf_fixdate("Thu, 29 Feb 2024 23:59:59 GMT").value()),
            "2024-02-29T23:59:59.000Z");
  EXPECT_EQ(to_rfc3339(parse_imf_fixdate("Thu, 01 Jan 1970 00:00:00 GMT").value()),
            "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(parse_imf_fixdate("Fri, 31 Dec 9999 23:59:59 GMT").value().time_since_epoch(),
            253'402'300'799s);
}

TEST(ImfFixdate, S08_other_forms_and_days_that_are_none_are_not) {
  for (const std::string_view text : {"",
                                      "Sunday, 06-Nov-94 08:49:37 GMT",
                                      "Sun Nov  6 08:49:37 1994",
                                      "Sun, 6 Nov 1994 08:49:37 GMT",
                                      "sun, 06 nov 1994 08:49:37 gmt",
                                      "Sun, 06 Nov 1994 08:49:37 UTC",
                                      "Sun, 06 Nov 1994 08:49:37 +0000",
                                      "Sun, 06 Nov 1994 08:49:37 GMT ",
                                      " Sun, 06 Nov 1994 08:49:37 GMT",
                                      "Mon, 06 Nov 1994 08:49:37 GMT",
                                      "Thu, 29 Feb 2023 00:00:00 GMT",
                                      "Wed, 00 Nov 1994 00:00:00 GMT",
                                      "Thu, 31 Nov 1994 00:00:00 GMT",
                                      "Sun, 06 Nov 1994 24:00:00 GMT",
                                      "Sun, 06 Nov 1994 08:60:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:60 GMT",
                                      "Sun, 06 Nov -994 08:49:37 GMT",
                                      "Sun, +6 Nov 1994 08:49:37 GMT",
                                      "1994-11-06T08:49:37Z",
                                      "784111777"}) {
    EXPECT_FALSE(parse_imf_fixdate(text)) << text;
  }
}

// Each text that is read is the one that would be written: no two texts mean one moment.
TEST(ImfFixdate, S08_every_byte_changed_is_another_moment_or_none) {
  constexpr std::string_view text = "Sun, 06 Nov 1994 08:49:37 GMT";
  const auto original = parse_imf_fixdate(text).value();
  int others = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed(text);
      changed[at] = static_cast<char>(byte);
      const auto time = parse_imf_fixdate(changed);
      EXPECT_EQ(time == original, changed == text) << changed;
      if (time && *time != original) ++others;
    }
    EXPECT_FALSE(parse_imf_fixdate(std::string(text).erase(at, 1)));
    EXPECT_FALSE(parse_imf_fixdate(std::string(text).insert(at, 1, '0')));
  }
  EXPECT_GT(others, 20);
}

TEST(ImfFixdate, S08_each_day_of_many_years_is_that_day_of_the_week_only) {
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (std::chrono::sys_days day{std::chrono::days(19'000)};
       day < std::chrono::sys_days(std::chrono::days(21'000)); day += std::chrono::days(1)) {
    const std::chrono::year_month_day date(day);
    const auto right = std::chrono::weekday(day).c_encoding();
    for (unsigned at = 0; at < 7; ++at) {
      const auto text = fmt::format(
          "{}, {:02} {} {} 00:00:00 GMT", days[at], static_cast<unsigned>(date.day()),
          months[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()));
      const auto read = parse_imf_fixdate(text);
      ASSERT_EQ(read.has_value(), at == right) << text;
      if (read) {
        ASSERT_EQ(*read, ClientTime(day)) << text;
      }
    }
  }
}

TEST(ClientTimes, S08_the_bounds_are_the_retention_and_the_skew) {
  const ClientTime now{20'000h * 24};
  EXPECT_EQ(judge(now, 24h, now), ClientTimeIs::fine);
  EXPECT_EQ(judge(now - 24h, 24h, now), ClientTimeIs::fine);
  EXPECT_EQ(judge(now - 24h - 1ms, 24h, now), ClientTimeIs::too_old);
  EXPECT_EQ(judge(now + limits::key_time_skew, 24h, now), ClientTimeIs::fine);
  EXPECT_EQ(judge(now + limits::key_time_skew + 1ms, 24h, now), ClientTimeIs::ahead);
  EXPECT_EQ(judge(ClientTime{}, limits::duration_max, now), ClientTimeIs::fine);
  EXPECT_EQ(judge(ClientTime{Millis((1LL << 48) - 1)}, 24h, now), ClientTimeIs::ahead);
}

}  // namespace
}  // namespace idem
