#include "admin/host.hpp"
#include "core/bytes/rfc3339.hpp"
#include "json/value.hpp"
#include "json/writer.hpp"

#include <gtest/gtest.h>

/// The small texts that pass between an operator and the gateway.
namespace idem {
namespace {

TEST(Rfc3339, times_are_read_and_written) {
  const StoreTime moment(Millis(1'795'286'848'120));
  EXPECT_EQ(to_rfc3339(moment), "2026-11-21T18:47:28.120Z");
  for (const auto* text :
       {"2026-11-21T18:47:28.120Z", "2026-11-21t18:47:28.12z", "2026-11-21T20:17:28.120999+01:30",
        "2026-11-21T18:47:28.1200-00:00", "2026-11-20T19:47:28.12-23:00"}) {
    EXPECT_EQ(parse_rfc3339(text), moment) << text;
  }
  EXPECT_EQ(to_rfc3339(StoreTime{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(parse_rfc3339("2024-02-29T00:00:00Z").has_value(), true);
  for (const auto* text :
       {"", "2026-11-21", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-21T24:00:00Z",
        "2026-11-21T18:60:00Z", "2026-11-21T18:47:60Z", "2026-11-21T18:47:28",
        "2026-11-21 18:47:28Z", "2026-11-21T18:47:28.Z", "2026-11-21T18:47:28ZZ",
        "2026-11-21T18:47:28+24:00", "2026-11-21T18:47:28+0100", "20261121T184728Z",
        "2026-11-21T18:47:28.1 Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

TEST(AdminHost, only_loopback_and_names_that_were_given) {
  const std::string names[] = {"idem.internal"};
  for (const auto* host : {"localhost", "LocalHost:80", "127.0.0.1", "127.255.0.9:1", "[::1]",
                           "[::1]:9901", "idem.internal:9901", "IDEM.INTERNAL"}) {
    EXPECT_TRUE(admin::is_our_host(host, names)) << host;
  }
  for (const auto* host :
       {"", ":80", "127", "127.", "127.0.0", "127.0.0.", "127.0.0.1.", "127.1", "127.0.0.1.2",
        "127.a.b.c", "127.0.0.0001", "1127.0.0.1", "128.0.0.1", "127.example.org",
        "localhost.example.org", "[::1", "[::]", "::1", "xidem.internal"}) {
    EXPECT_FALSE(admin::is_our_host(host, names)) << host;
  }
}

TEST(AdminJson, names_that_occur_twice_and_other_ambiguous_texts_are_refused) {
  for (const auto* text : {R"({"a":1,"a":2})", R"([{"a":{"b":1,"\u0062":2}}])", "{", "", "1 2",
                           "\"\xff\"", R"("\ud800")", "[01]", "{\"a\":1,}", "nul"}) {
    EXPECT_FALSE(json::parse(text)) << text;
  }
  const auto deep = std::string(65, '[') + std::string(65, ']');
  EXPECT_FALSE(json::parse(deep));
  const auto value =
      json::parse(R"({"n":18446744073709551615,"i":-5,"t":"\u00e4","l":[true,null]})");
  ASSERT_TRUE(value);
  EXPECT_EQ(std::get<std::uint64_t>(value->find("n")->is), 18446744073709551615U);
  EXPECT_EQ(std::get<std::int64_t>(value->find("i")->is), -5);
  EXPECT_EQ(std::get<std::string>(value->find("t")->is), "\xc3\xa4");
  EXPECT_EQ(std::get<json::Array>(value->find("l")->is).size(), 2U);
  EXPECT_EQ(value->find("absent"), nullptr);
}

TEST(AdminJson, the_output_is_json_whatever_the_bytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  json::Writer out;
  out.begin_array();
  out.text(bytes);
  out.begin_object();
  out.member("\"\\", "x");
  out.member("n", std::uint64_t{18446744073709551615U});
  out.end_object();
  out.begin_object();
  out.end_object();
  out.null();
  out.end_array();
  const auto text = out.take();
  const auto value = json::parse(text);
  ASSERT_TRUE(value) << text;
  const auto& items = std::get<json::Array>(value->is);
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(std::get<std::string>(items[0].is).substr(0, 128), bytes.substr(0, 128));
  EXPECT_NE(items[1].find("\"\\"), nullptr);
}

}  // namespace
}  // namespace idem
