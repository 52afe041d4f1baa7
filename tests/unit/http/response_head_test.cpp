#include "http/head.hpp"
#include "idem/limits.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace idem::http {
namespace {

struct Parsed {
  std::shared_ptr<const std::string> buffer;  ///< The bytes of the head's views.
  int status = 0;                             ///< Of the refusal; 0 where there was none.
  std::string detail;
  bool complete = false;
  std::size_t bytes = 0;
  ResponseHead head;
};

Parsed parse(std::string_view bytes, std::string_view method = "POST") {
  Parsed parsed;
  parsed.buffer = std::make_shared<const std::string>(bytes);
  std::size_t scanned = 0;
  const HeadResult result = parse_response_head(*parsed.buffer, scanned, method, parsed.head);
  if (!result) {
    parsed.status = result.error().status;
    parsed.detail = result.error().detail;
  } else if (*result) {
    parsed.complete = true;
    parsed.bytes = **result;
  }
  return parsed;
}

std::string response(const std::vector<std::string>& lines,
                     std::string_view start = "HTTP/1.1 200 OK") {
  std::string text = fmt::format("{}\r\n", start);
  for (const auto& line : lines) text += line + "\r\n";
  return text + "\r\n";
}

Parsed with_lines(const std::vector<std::string>& lines) { return parse(response(lines)); }

TEST(ResponseHead, a_plain_response_is_parsed) {
  const std::string bytes = response({"Content-Type: a/b", "Content-Length: 5", "Retry-After: 7"},
                                     "HTTP/1.1 201 Created here");
  const auto parsed = parse(bytes + "hello");
  ASSERT_TRUE(parsed.complete);
  EXPECT_EQ(parsed.bytes, bytes.size());
  EXPECT_EQ(parsed.head.status, 201);
  EXPECT_EQ(parsed.head.reason, "Created here");
  EXPECT_EQ(parsed.head.minor_version, 1);
  ASSERT_EQ(parsed.head.fields.size(), 3u);
  EXPECT_EQ(parsed.head.fields[2].known, FieldName::retry_after);
  EXPECT_EQ(parsed.head.framing, Framing::content_length);
  EXPECT_EQ(parsed.head.content_length, 5u);
  EXPECT_TRUE(parsed.head.keep_alive);
}

TEST(ResponseHead, status_lines) {
  EXPECT_EQ(parse(response({}, "HTTP/1.1 200")).head.status, 200);
  EXPECT_EQ(parse(response({}, "HTTP/1.1 200 ")).head.reason, "");
  EXPECT_EQ(parse(response({}, "HTTP/1.0 599 \xc3\xa4\t!")).head.minor_version, 0);
  for (const char* line : {"HTTP/1.1 099 x",    "HTTP/1.1 600 x",   "HTTP/1.1 999",
                           "HTTP/1.1 20 x",     "HTTP/1.1 2000 x",  "HTTP/1.1 200x",
                           "HTTP/1.1  200 OK",  "HTTP/1.1 2x0 OK",  "HTTP/1.2 200 OK",
                           "HTTP/2.0 200 OK",   "http/1.1 200 OK",  "HTTP/1.1",
                           "HTTP/1.1 ",         "200 OK",           "ICY 200 OK",
                           " HTTP/1.1 200 OK",  "HTTP/1.1\t200 OK", "HTTP/1.1 200 O\x01K",
                           "HTTP/1.1 200 O\rK", "HTTP/1.1 -20 OK",  ""}) {
    EXPECT_EQ(parse(response({}, line)).status, 502) << line;
  }
}

TEST(ResponseHead, P04_white_space_before_a_colon_is_stripped) {
  const auto parsed = with_lines({"Content-Length \t: 5"});
  ASSERT_TRUE(parsed.complete);
  EXPECT_EQ(parsed.head.fields[0].name, "Content-Length");
  EXPECT_EQ(parsed.head.content_length, 5u);
  EXPECT_EQ(with_lines({"Two words: x"}).status, 502);
  EXPECT_EQ(with_lines({" : x"}).status, 502);
}

// In pieces, a name that goes on behind a blank was waited for like any name, until its colon.
TEST(ResponseHead, P04_a_name_that_goes_on_behind_white_space_is_refused_at_once) {
  const std::string bytes = "HTTP/1.1 200 OK\r\nX: " + std::string(64, 'v') + "\r\nTwo words";
  ResponseHead head;
  std::size_t scanned = 0;
  const std::size_t blank = bytes.rfind(' ') + 1;
  const auto before = parse_response_head({bytes.data(), blank}, scanned, "POST", head);
  ASSERT_TRUE(before && !*before);
  const auto behind = parse_response_head({bytes.data(), blank + 1}, scanned, "POST", head);
  ASSERT_FALSE(behind);
  EXPECT_EQ(behind.error().detail, parse(bytes).detail);
}

TEST(ResponseHead, P05_folded_lines_are_refused) {
  EXPECT_EQ(with_lines({"X-A: b", " c"}).status, 502);
  EXPECT_EQ(with_lines({"\tX-A: b"}).status, 502);
}

TEST(ResponseHead, P07_bare_line_ends_and_controls_are_refused) {
  EXPECT_EQ(parse("HTTP/1.1 200 OK\n\n").status, 502);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nA: b\n\r\n").status, 502);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n").status, 502);
  EXPECT_EQ(parse(std::string_view("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", 25)).status, 502);
  EXPECT_EQ(with_lines({"A"}).status, 502);
  EXPECT_EQ(with_lines({"A\xff: b"}).status, 502);
}

TEST(ResponseHead, P08_content_length_with_transfer_encoding_is_refused) {
  EXPECT_EQ(with_lines({"Content-Length: 5", "Transfer-Encoding: chunked"}).status, 502);
  EXPECT_EQ(with_lines({"Transfer-Encoding: chunked", "Content-Length: 5"}).status, 502);
}

TEST(ResponseHead, P09_only_chunked_is_a_transfer_encoding) {
  EXPECT_EQ(with_lines({"Transfer-Encoding: CHUNKED"}).head.framing, Framing::chunked);
  for (const char* value : {"gzip", "gzip, chunked", "chunked, chunked", "identity", ""}) {
    EXPECT_EQ(with_lines({fmt::format("Transfer-Encoding: {}", value)}).status, 502) << value;
  }
  EXPECT_EQ(with_lines({"Transfer-Encoding: chunked", "Transfer-Encoding: chunked"}).status, 502);
}

TEST(ResponseHead, P10_transfer_encoding_in_http_1_0_is_refused) {
  EXPECT_EQ(parse(response({"Transfer-Encoding: chunked"}, "HTTP/1.0 200 OK")).status, 502);
}

TEST(ResponseHead, P11_content_length_is_one_number_on_one_line) {
  for (const char* value : {"", "-1", "+1", "5, 5", "0x5", "1 0", "99999999999999999999"}) {
    EXPECT_EQ(with_lines({fmt::format("Content-Length: {}", value)}).status, 502) << value;
  }
  EXPECT_EQ(with_lines({"Content-Length: 5", "Content-Length: 5"}).status, 502);
  EXPECT_EQ(with_lines({"Content-Length: 5", "Content-Length: 6"}).status, 502);
  const auto empty = with_lines({"Content-Length: 0"});
  EXPECT_EQ(empty.head.framing, Framing::content_length);
  EXPECT_EQ(empty.head.content_length, 0u);
}

TEST(ResponseHead, without_a_length_the_body_ends_with_the_connection) {
  const auto parsed = with_lines({});
  EXPECT_EQ(parsed.head.framing, Framing::until_close);
  EXPECT_FALSE(parsed.head.keep_alive);
}

TEST(ResponseHead, P19_no_body_follows_head_1xx_204_and_304) {
  const std::vector<std::vector<std::string>> fields = {
      {},
      {"Content-Length: 5"},
      {"Transfer-Encoding: chunked"},
      {"Content-Length: 5", "Transfer-Encoding: chunked"}};
  for (const auto& lines : fields) {
    for (const char* start : {"HTTP/1.1 100 Continue", "HTTP/1.1 101 Switching", "HTTP/1.1 103 x",
                              "HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified"}) {
      const auto parsed = parse(response(lines, start));
      ASSERT_TRUE(parsed.complete) << start;
      EXPECT_EQ(parsed.head.framing, Framing::none) << start;
      // A body that was announced may still come: that connection carries nothing else.
      const std::string_view line(start);
      const bool coded = !lines.empty() && lines.back().starts_with("Transfer");
      const bool announced = coded || (!lines.empty() && line.contains("204"));
      EXPECT_EQ(parsed.head.keep_alive, !announced) << start;
    }
    const auto parsed = parse(response(lines), "HEAD");
    ASSERT_TRUE(parsed.complete);
    EXPECT_EQ(parsed.head.framing, Framing::none);
  }
  EXPECT_EQ(parse(response({"Content-Length: 5"}), "HEAD").head.content_length, 5u);
  EXPECT_EQ(parse(response({"Content-Length: 5"}), "head").head.framing, Framing::content_length);
}

TEST(ResponseHead, P20_framing_fields_of_a_response_without_body_are_dropped) {
  const auto parsed = parse(response({"Transfer-Encoding: chunked", "Content-Length: 5", "A: b"},
                                     "HTTP/1.1 204 No Content"));
  ASSERT_TRUE(parsed.complete);
  const HopByHop hop(parsed.head.fields);
  EXPECT_TRUE(hop.drops(parsed.head.fields[0]));
  EXPECT_TRUE(hop.drops(parsed.head.fields[1]));
  EXPECT_FALSE(hop.drops(parsed.head.fields[2]));
}

TEST(ResponseHead, keep_alive_follows_version_and_connection) {
  const auto keeps = [](std::string_view version, std::vector<std::string> lines) {
    lines.emplace_back("Content-Length: 0");
    return parse(response(lines, fmt::format("{} 200 OK", version))).head.keep_alive;
  };
  EXPECT_TRUE(keeps("HTTP/1.1", {}));
  EXPECT_FALSE(keeps("HTTP/1.1", {"Connection: x, Close"}));
  EXPECT_FALSE(keeps("HTTP/1.0", {}));
  EXPECT_TRUE(keeps("HTTP/1.0", {"Connection: keep-alive"}));
}

TEST(ResponseHead, P14_connection_fields_of_a_response_are_dropped) {
  const auto parsed = with_lines({"Connection: X-Own", "X-Own: a", "Keep-Alive: 5", "Date: b"});
  const HopByHop hop(parsed.head.fields);
  std::vector<std::string_view> kept;
  for (const auto& field : parsed.head.fields) {
    if (!hop.drops(field)) kept.push_back(field.name);
  }
  EXPECT_EQ(kept, std::vector<std::string_view>{"Date"});
}

TEST(ResponseHead, P26_a_head_over_the_limits_is_refused) {
  EXPECT_EQ(with_lines({"X: " + std::string(limits::head_bytes_max, 'v')}).status, 502);
  EXPECT_EQ(parse("HTTP/1.1 200 " + std::string(limits::head_bytes_max, 'r')).status, 502);
  EXPECT_TRUE(with_lines(std::vector<std::string>(limits::head_fields_max, "a: b")).complete);
  EXPECT_EQ(with_lines(std::vector<std::string>(limits::head_fields_max + 1, "a: b")).status, 502);
}

TEST(ResponseHead, pieces_do_not_change_the_verdict) {
  for (const std::string& bytes :
       {response({"Content-Length: 5", "Connection : close", "X: " + std::string(200, 'v')}),
        response({"Content-Length: 5", "X: y", " folded"}), response({"A: b\n", "C: d"}),
        response({"A b: c"}), response({}, "HTTP/1.1 2000 OK"),
        response({"X: " + std::string(20'000, 'v')}),
        response({"X: " + std::string(200, 'v') + "\x7f"})}) {
    const auto whole = parse(bytes);
    ResponseHead head;
    std::size_t scanned = 0, fed = 0;
    HeadResult result;
    do {
      ++fed;
      result = parse_response_head({bytes.data(), fed}, scanned, "POST", head);
    } while (result && !*result && fed < bytes.size());
    EXPECT_EQ(result ? 0 : result.error().status, whole.status) << bytes;
    EXPECT_EQ(result ? "" : result.error().detail, whole.detail) << bytes;
    if (whole.complete) {
      ASSERT_TRUE(result && *result) << bytes;
      EXPECT_EQ(**result, whole.bytes);
    }
  }
}

}  // namespace
}  // namespace idem::http
