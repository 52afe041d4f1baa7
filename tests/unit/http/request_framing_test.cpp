// Where a request ends, and which of its fields may go on: P8 to P11 and P14.
#include "unit/http/request_parsing.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace idem::http {
namespace {

using namespace test_requests;

TEST(RequestHead, P08_content_length_with_transfer_encoding_is_refused) {
  EXPECT_EQ(status_of(request({"Content-Length: 3", "Transfer-Encoding: chunked"})), 400);
  EXPECT_EQ(status_of(request({"Transfer-Encoding: chunked", "Content-Length: 3"})), 400);
  EXPECT_EQ(status_of(request({"Transfer-Encoding: gzip", "Content-Length: 3"})), 400);
  EXPECT_EQ(status_of(request({"Transfer-Encoding: chunked", "X: y", "Content-Length: 0"})), 400);
}

TEST(RequestHead, P09_only_chunked_is_a_transfer_encoding) {
  for (const char* value : {"chunked", "Chunked", "CHUNKED", "\tchunked ", "  chunked\t"}) {
    const auto parsed = parse(request({fmt::format("Transfer-Encoding:{}", value)}));
    ASSERT_TRUE(parsed.complete) << value;
    EXPECT_EQ(parsed.head.framing, Framing::chunked);
  }
  for (const char* value : {"gzip", "identity", "xchunked", "chunkedx", "chunk", "gzip, chunked",
                            "chunkedchunked", "'chunked'"}) {
    EXPECT_EQ(status_of(request({fmt::format("Transfer-Encoding: {}", value)})), 501) << value;
  }
  for (const char* value :
       {"", ",", "chunked,", ", chunked", "chunked, chunked", "chunked, gzip", "chunked;a=b",
        "\"chunked\"", "chunked chunked", "chunked, identity, chunked", "ch\xc3nked", "gzip,,br"}) {
    EXPECT_EQ(status_of(request({fmt::format("Transfer-Encoding: {}", value)})), 400) << value;
  }
  EXPECT_EQ(status_of(request({"Transfer-Encoding: chunked", "Transfer-Encoding: chunked"})), 400);
  EXPECT_EQ(status_of(request({"Transfer-Encoding: gzip", "Transfer-Encoding: chunked"})), 400);
}

TEST(RequestHead, P09_an_unknown_coding_is_501_only_in_a_request_that_is_right_otherwise) {
  EXPECT_EQ(status_of(request({"Transfer-Encoding: gzip", "X : y"})), 400);
  EXPECT_EQ(status_of(request({"Transfer-Encoding: gzip", "Expect: tea"})), 501);
}

TEST(RequestHead, P10_transfer_encoding_in_http_1_0_is_refused) {
  EXPECT_EQ(status_of(request({"Transfer-Encoding: chunked"}, "POST / HTTP/1.0")), 400);
  EXPECT_EQ(status_of(request({"Transfer-Encoding: gzip"}, "POST / HTTP/1.0")), 400);
}

TEST(RequestHead, P11_content_length_is_one_number_on_one_line) {
  const std::vector<std::pair<const char*, std::uint64_t>> right = {
      {"0", 0}, {"7", 7}, {"007", 7}, {" 42\t", 42}, {"999999999999999999", 999999999999999999}};
  for (const auto& [value, length] : right) {
    const auto parsed = parse(request({fmt::format("Content-Length:{}", value)}));
    ASSERT_TRUE(parsed.complete) << value;
    EXPECT_EQ(parsed.head.framing, Framing::content_length) << value;
    EXPECT_EQ(parsed.head.content_length, length) << value;
  }
  for (const char* value : {"", "-1", "+1", "-0", "0x5", "5, 5", "5,", "1 0", "1_0", "5.0", "1e3",
                            "abc", "5;", "\"5\"", "99999999999999999999", "18446744073709551616",
                            "0000000000000000000000005", "5\v", "\xd9\xa5"}) {
    EXPECT_EQ(status_of(request({fmt::format("Content-Length: {}", value)})), 400) << value;
  }
  EXPECT_EQ(status_of(request({"Content-Length: 5", "Content-Length: 5"})), 400);
  EXPECT_EQ(status_of(request({"Content-Length: 5", "content-length: 6"})), 400);
}

TEST(RequestHead, P11_names_that_pass_for_framing_fields_are_refused) {
  for (const char* name :
       {"Transfer_Encoding", "TransferEncoding", "Transfer.Encoding", "Transfer-Encoding-",
        "-Transfer-Encoding", "Transfer--Encoding", "transfer~encoding", "Transfer-%45ncoding",
        "Content_Length", "ContentLength", "Content-Length-", "Content-Length2", "1Content-Length",
        "content!length", "C-o-n-t-e-n-t-L-e-n-g-t-h", "%43ontent-Length", "Content%2DLength"}) {
    EXPECT_EQ(status_of(request({fmt::format("{}: 5", name)})), 400) << name;
  }
  for (const char* name : {"X-Content-Length", "Content-Lengths", "Content-Language",
                           "Transfer-Encodings", "Content-Len", "Transfer-Coding", "--------------",
                           "12345678901234567", "Content-LengthTransfer-Encoding"}) {
    EXPECT_TRUE(accepted(request({fmt::format("{}: 5", name)}))) << name;
  }
}

TEST(RequestHead, P11_chunked_is_not_a_content_coding) {
  EXPECT_EQ(status_of(request({"Content-Encoding: chunked", "Content-Length: 4"})), 400);
  EXPECT_EQ(status_of(request({"content-encoding: gzip, Chunked"})), 400);
  EXPECT_TRUE(accepted(request({"Content-Encoding: gzip"})));
  EXPECT_TRUE(accepted(request({"Content-Encoding: aws-chunked"})));
}

TEST(RequestHead, P14_connection_options_are_tokens) {
  EXPECT_TRUE(accepted(request({"Connection: close, X-Own, TE"})));
  EXPECT_TRUE(accepted(request({"Connection:"})));
  EXPECT_TRUE(accepted(request({"Connection: , keep-alive,"})));
  EXPECT_EQ(status_of(request({"Connection: close x"})), 400);
  EXPECT_EQ(status_of(request({"Connection: \"close\""})), 400);
  EXPECT_EQ(status_of(request({"Connection: close; x"})), 400);
}

TEST(RequestHead, P14_connection_must_not_name_a_field_we_rely_on) {
  for (const char* option :
       {"Content-Length", "transfer-encoding", "HOST", "Authorization", "Idempotency-Key", "cookie",
        "Content-Type", "Idem-Fence", "idem-", "IDEM-Operation", "close, Idempotency-Key"}) {
    EXPECT_EQ(status_of(request({fmt::format("Connection: {}", option)})), 400) << option;
  }
  for (const char* option : {"idempotent", "idem", "Upgrade", "Cookies", "X-Host"}) {
    EXPECT_TRUE(accepted(request({fmt::format("Connection: {}", option)}))) << option;
  }
  EXPECT_EQ(status_of(request({"Connection: close", "Connection: host"})), 400);
}

TEST(RequestHead, P14_hop_by_hop_fields_are_dropped) {
  const auto parsed = parse(request(
      {"Connection: X-Own, keep-alive, close", "Keep-Alive: 5", "Proxy-Connection: x", "TE: a",
       "Trailer: b", "Upgrade: c", "Content-Length: 0", "x-own: d", "X-Other: e", "Via: f",
       "Authorization: g", "Idempotency-Key: h", "connection: x-second", "X-Second: i"}));
  ASSERT_TRUE(parsed.complete) << parsed.detail;
  const HopByHop hop(parsed.head.fields);
  std::vector<std::string_view> kept;
  for (const auto& field : parsed.head.fields) {
    if (!hop.drops(field)) kept.push_back(field.name);
  }
  const std::vector<std::string_view> expected = {"Host", "X-Other", "Via", "Authorization",
                                                  "Idempotency-Key"};
  EXPECT_EQ(kept, expected);
}

TEST(RequestHead, P14_fields_that_no_parser_has_seen_are_known_by_name) {
  const std::vector<FieldView> fields = {
      {"Connection", "x-own"}, {"Transfer-Encoding", "chunked"}, {"X-Own", "a"}, {"X-Other", "b"}};
  const HopByHop hop(fields);
  EXPECT_TRUE(hop.drops(fields[0]));
  EXPECT_TRUE(hop.drops(fields[1]));
  EXPECT_TRUE(hop.drops(fields[2]));
  EXPECT_FALSE(hop.drops(fields[3]));
}

}  // namespace
}  // namespace idem::http
