#include "idem/limits.hpp"
#include "unit/http/request_parsing.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace idem::http {
namespace {

using namespace test_requests;

std::string with_target(std::string_view target, std::string_view method = "GET") {
  return request({}, fmt::format("{} {} HTTP/1.1", method, target));
}

std::string with_host(std::string_view host) {
  return fmt::format("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", host);
}

TEST(RequestHead, a_plain_request_is_parsed) {
  const std::string bytes =
      "POST /v1/payments?x=1 HTTP/1.1\r\nHost: api.example.com:8080\r\nContent-Type: text/plain\r\n"
      "Idempotency-Key:  \t\"abc\" \t\r\nX-Empty:\r\nContent-Length: 12\r\n\r\nbody";
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed.complete);
  EXPECT_EQ(parsed.bytes, bytes.size() - 4);
  const auto& head = parsed.head;
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1/payments?x=1");
  EXPECT_EQ(head.origin_form, head.target);
  EXPECT_EQ(head.host, "api.example.com:8080");
  EXPECT_EQ(head.minor_version, 1);
  ASSERT_EQ(head.fields.size(), 5u);
  EXPECT_EQ(head.fields[1].name, "Content-Type");
  EXPECT_EQ(head.fields[1].known, FieldName::content_type);
  EXPECT_EQ(head.fields[2].value, "\"abc\"");
  EXPECT_EQ(head.fields[2].known, FieldName::idempotency_key);
  EXPECT_EQ(head.fields[3].value, "");
  EXPECT_EQ(head.fields[3].known, FieldName::other);
  EXPECT_EQ(head.framing, Framing::content_length);
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_FALSE(head.expect_continue);
  EXPECT_FALSE(head.upgrade);
}

TEST(RequestHead, known_names_are_found_in_any_case) {
  const auto parsed = parse(request({"AUTHORIZATION: a", "te: trailers", "vIA: x", "Trailer: y",
                                     "Retry-After: 1", "Location: /", "keep-Alive: 5",
                                     "Proxy-Connection: x", "X-Trailer: n", "User-Agent: n"}));
  ASSERT_TRUE(parsed.complete);
  const std::vector<FieldName> expected = {
      FieldName::host,     FieldName::authorization, FieldName::te,
      FieldName::via,      FieldName::trailer,       FieldName::retry_after,
      FieldName::location, FieldName::keep_alive,    FieldName::proxy_connection,
      FieldName::other,    FieldName::other};
  ASSERT_EQ(parsed.head.fields.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(parsed.head.fields[i].known, expected[i]) << parsed.head.fields[i].name;
  }
}

TEST(RequestHead, P01_host_must_be_there_once) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://a/ HTTP/1.1\r\n\r\n"), 400);
  EXPECT_TRUE(accepted("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestHead, P01_host_must_be_a_name_or_address_with_an_optional_port) {
  for (const char* host :
       {"example.com", "example.com:80", "example.com:", "127.0.0.1:65535", "[::1]", "[::1]:8080",
        "[2001:db8::8a2e:370:7334]", "[1:2:3:4:5:6:7:8]", "[::ffff:192.0.2.1]", "[::]", "[1::]",
        "0.0.0.0=5000", "a_b-c.d~e", "ex%41mple.com", "xn--nxasmq6b"}) {
    EXPECT_TRUE(accepted(with_host(host))) << host;
  }
  for (const char* host : {"",
                           " ",
                           ":80",
                           "user@example.com",
                           "user:pw@example.com",
                           "a/b",
                           "a?b",
                           "a#b",
                           "a b",
                           "a,b",
                           "a, b",
                           "a:b",
                           "a:99999",
                           "a:80:80",
                           "a:+80",
                           "a\\b",
                           "a\"b",
                           "ex%4",
                           "ex%zzmple",
                           "http://a",
                           "[",
                           "[]",
                           "[::1",
                           "::1",
                           "[::1]x",
                           "[::1]:x",
                           "[1:2:3:4:5:6:7]",
                           "[1::2::3]",
                           "[1:2:3:4:5:6:7:8:9]",
                           "[12345::]",
                           "[::g]",
                           "[1:]",
                           "[:1]",
                           "[::1%25eth0]",
                           "[v1.a]",
                           "[::256.0.0.1]",
                           "[::1.2.3]",
                           "[::1.2.3.04]",
                           "[1:2:3:4:5:6:7::8]",
                           "ex\xc3\xa4mple"}) {
    EXPECT_EQ(status_of(with_host(host)), 400) << host;
  }
}

TEST(RequestHead, P02_absolute_form_replaces_the_host) {
  const auto parsed =
      parse("GET http://Target.example:81/a/b?c HTTP/1.1\r\nHost: other.example\r\n\r\n");
  ASSERT_TRUE(parsed.complete);
  EXPECT_EQ(parsed.head.target, "http://Target.example:81/a/b?c");
  EXPECT_EQ(parsed.head.host, "Target.example:81");
  EXPECT_EQ(parsed.head.origin_form, "/a/b?c");
}

TEST(RequestHead, P02_absolute_form_without_a_path) {
  EXPECT_EQ(parse(with_target("http://a")).head.origin_form, "/");
  EXPECT_EQ(parse(with_target("HTTPS://a")).head.origin_form, "/");
  EXPECT_EQ(parse(with_target("http://a?x=/y?z")).head.origin_form, "/?x=/y?z");
  EXPECT_EQ(parse(with_target("http://a", "OPTIONS")).head.origin_form, "*");
  EXPECT_EQ(parse(with_target("http://a/", "OPTIONS")).head.origin_form, "/");
}

TEST(RequestHead, P02_the_query_without_a_path_outlives_moves_of_the_head) {
  RequestHead moved;
  {
    auto parsed = parse(with_target("http://a?x"));
    moved = std::move(parsed.head);
  }
  EXPECT_EQ(moved.origin_form, "/?x");
}

TEST(RequestHead, P02_absolute_form_needs_a_valid_authority_of_http) {
  for (const char* target : {"http://", "http:///a", "http://u@a/", "http://u:p@a/", "http://:80/",
                             "http://a:b/", "http:/a", "http:a", "ftp://a/", "ws://a/", "urn:a",
                             "http://a,b/", "http://[::1/", "s://]ufd/:"}) {
    EXPECT_EQ(status_of(with_target(target)), 400) << target;
  }
}

TEST(RequestHead, P03_the_target_is_not_changed_by_a_byte) {
  for (const char* target :
       {"/", "//", "///a//b", "/a/../b/./c", "/%2e%2E/%zz%", "/a;b=c?d=e&f=%20", "/?", "/a?b?c",
        "/path\\file", "/a|b", "/\"<>^`{}", "/*", "/http://x/", "/a:b@c!$&'()*+,;="}) {
    const auto parsed = parse(with_target(target));
    ASSERT_TRUE(parsed.complete) << target << ' ' << parsed.detail;
    EXPECT_EQ(parsed.head.origin_form, target);
    EXPECT_EQ(parsed.head.origin_form.data(), parsed.buffer->data() + 4)
        << "a view into the buffer";
  }
}

TEST(RequestHead, a_target_with_a_byte_that_none_has_is_refused) {
  for (int c = 0; c < 256; ++c) {
    const std::string target = std::string("/a") + static_cast<char>(c) + "b";
    const bool right = c > 0x20 && c < 0x7F && c != '#';
    EXPECT_EQ(status_of(with_target(target)), right ? 0 : 400) << c;
  }
}

TEST(RequestHead, a_target_has_the_form_of_its_method) {
  EXPECT_TRUE(accepted(with_target("*", "OPTIONS")));
  EXPECT_EQ(parse(with_target("*", "OPTIONS")).head.origin_form, "*");
  EXPECT_EQ(status_of(with_target("*", "GET")), 400);
  EXPECT_EQ(status_of(with_target("*a", "OPTIONS")), 400);
  EXPECT_EQ(status_of(with_target("example.com:443", "GET")), 400);
  EXPECT_EQ(status_of(with_target("a/b", "GET")), 400);
  EXPECT_EQ(status_of(with_target("?a", "GET")), 400);
  EXPECT_EQ(status_of(with_target("example.com:443", "CONNECT")), 501);
  EXPECT_EQ(status_of(with_target("/", "CONNECT")), 501);
}

TEST(RequestHead, P04_white_space_before_a_colon_is_refused) {
  EXPECT_EQ(status_of(request({"X-A : b"})), 400);
  EXPECT_EQ(status_of(request({"X-A\t: b"})), 400);
  EXPECT_EQ(status_of(request({"Content-Length : 3"})), 400);
  EXPECT_EQ(status_of(request({"Transfer-Encoding : chunked"})), 400);
}

TEST(RequestHead, P05_folded_lines_are_refused) {
  EXPECT_EQ(status_of(request({"X-A: b", " c"})), 400);
  EXPECT_EQ(status_of(request({"X-A: b", "\tc: d"})), 400);
  EXPECT_EQ(status_of(request({"Transfer-Encoding:", " chunked"})), 400);
  EXPECT_EQ(status_of(request({"X-A: b", " "})), 400);
}

TEST(RequestHead, P06_white_space_after_the_start_line_is_refused) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\tX: a\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestHead, P07_controls_in_a_value_are_refused) {
  for (int c = 0; c < 256; ++c) {
    for (const std::size_t before : {0u, 1u, 6u, 7u, 8u, 20u}) {
      const std::string value =
          std::string(before, 'v') + static_cast<char>(c) + std::string(9, 'w');
      const bool right = c == '\t' || (c >= 0x20 && c != 0x7F);
      EXPECT_EQ(status_of(request({"X-A: " + value})), right ? 0 : 400) << c << ' ' << before;
    }
  }
}

TEST(RequestHead, P07_lines_end_with_both_bytes) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\rHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n\rX: b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"), 400);
}

TEST(RequestHead, field_names_are_tokens) {
  for (int c = 0; c < 256; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool token = letter || (c >= '0' && c <= '9') ||
                       (c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) !=
                                      std::string_view::npos);
    if (c == ':') continue;  // Ends the name.
    const std::string line = std::string("X") + static_cast<char>(c) + "Y: v";
    EXPECT_EQ(status_of(request({line})), token ? 0 : 400) << c;
  }
  EXPECT_EQ(status_of(request({": v"})), 400);
  EXPECT_EQ(status_of(request({"NoColon"})), 400);
}

TEST(RequestHead, keep_alive_follows_version_and_connection) {
  const auto keeps = [](std::string_view version, std::vector<std::string> lines) {
    return parse(request(lines, fmt::format("GET / {}", version))).head.keep_alive;
  };
  EXPECT_TRUE(keeps("HTTP/1.1", {}));
  EXPECT_FALSE(keeps("HTTP/1.1", {"Connection: Close"}));
  EXPECT_FALSE(keeps("HTTP/1.1", {"Connection: keep-alive, close"}));
  EXPECT_FALSE(keeps("HTTP/1.0", {}));
  EXPECT_TRUE(keeps("HTTP/1.0", {"Connection: Keep-Alive"}));
  EXPECT_FALSE(keeps("HTTP/1.0", {"Connection: keep-alive", "Connection: close"}));
}

TEST(RequestHead, upgrade_needs_field_and_option_and_http_1_1) {
  EXPECT_TRUE(parse(request({"Connection: Upgrade", "Upgrade: websocket"})).head.upgrade);
  EXPECT_FALSE(parse(request({"Upgrade: websocket"})).head.upgrade);
  EXPECT_FALSE(parse(request({"Connection: upgrade"})).head.upgrade);
  EXPECT_FALSE(
      parse(request({"Connection: upgrade", "Upgrade: x"}, "GET / HTTP/1.0")).head.upgrade);
}

TEST(RequestHead, P17_expectations_other_than_100_continue_are_refused) {
  EXPECT_TRUE(parse(request({"Expect: 100-Continue"})).head.expect_continue);
  EXPECT_EQ(status_of(request({"Expect: 200-ok"})), 417);
  EXPECT_EQ(status_of(request({"Expect: x 100-continue"})), 417);
  EXPECT_EQ(status_of(request({"Expect: 100-continue", "Expect: tea"})), 417);
  const auto old = parse(request({"Expect: tea"}, "POST / HTTP/1.0"));
  EXPECT_TRUE(old.complete);
  EXPECT_FALSE(old.head.expect_continue);
  EXPECT_FALSE(parse(request({"Expect: 100-continue"}, "POST / HTTP/1.0")).head.expect_continue);
}

TEST(RequestHead, versions) {
  for (const char* version : {"HTTP/2.0", "HTTP/1.2", "HTTP/3.0", "HTTP/0.9", "HTTP/9.9"}) {
    EXPECT_EQ(status_of(request({}, fmt::format("GET / {}", version))), 505) << version;
  }
  for (const char* version : {"http/1.1", "HTTP/1.1 ", " HTTP/1.1", "HTTP/11", "HTTP/1", "HTTP/1.",
                              "HTTP/01.1", "HTTP/1.10", "HTTP/ 1.1", "FTP/1.1", "HTTP1.1", "",
                              "HTTP/a.b", "HTTP/2", "Http/1.1", "HTTP/1.1\t"}) {
    EXPECT_EQ(status_of(request({}, fmt::format("GET / {}", version))), 400) << version;
  }
  EXPECT_EQ(status_of("GET /\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
}

TEST(RequestHead, P28_methods_are_tokens_and_stay_as_they_are) {
  for (const char* method : {"get", "PURGE", "X-1", "-BLARGH", "M!#$%&'*+.^_`|~"}) {
    const auto bytes = with_target("/", method);
    EXPECT_EQ(parse(bytes).head.method, method);
  }
  for (const char* start : {"G(T / HTTP/1.1", " GET / HTTP/1.1", "GET\t/ HTTP/1.1",
                            "GET: / HTTP/1.1", "GET  / HTTP/1.1", "/ HTTP/1.1", "G\xc3T / HTTP/1.1",
                            "GET / HTTP/1.1 x", "GET /  HTTP/1.1", "GET / a HTTP/1.1"}) {
    EXPECT_EQ(status_of(request({}, start)), 400) << start;
  }
  EXPECT_TRUE(accepted(with_target("/", std::string(32, 'M'))));
  EXPECT_EQ(status_of(std::string(33, 'M')), 400) << "before the line is complete";
}

TEST(RequestHead, two_empty_lines_before_the_request_are_skipped) {
  EXPECT_EQ(parse("\r\n" + request({})).bytes, request({}).size() + 2);
  EXPECT_EQ(parse("\r\n\r\n" + request({})).bytes, request({}).size() + 4);
  EXPECT_EQ(status_of("\r\n\r\n\r\n" + request({})), 400);
  EXPECT_EQ(status_of("\n" + request({})), 400);
  EXPECT_EQ(status_of("\r" + request({})), 400);
  EXPECT_EQ(status_of(" \r\n" + request({})), 400);
}

TEST(RequestHead, P26_a_request_line_over_the_limit_is_414) {
  const std::string around = "GET  HTTP/1.1";
  const auto with_line_of = [&](std::size_t bytes) {
    return with_target("/" + std::string(bytes - around.size() - 1, 'a'));
  };
  EXPECT_TRUE(accepted(with_line_of(limits::request_line_bytes_max)));
  EXPECT_EQ(status_of(with_line_of(limits::request_line_bytes_max + 1)), 414);
  EXPECT_EQ(status_of("GET /" + std::string(9000, 'a')), 414) << "before the line is complete";
  EXPECT_TRUE(accepted("\r\n\r\n" + with_line_of(limits::request_line_bytes_max)));
}

TEST(RequestHead, P26_a_head_over_the_limits_is_431) {
  const std::string rest = request({"X: "});
  const auto with_head_of = [&](std::size_t bytes) {
    return request({"X: " + std::string(bytes - rest.size(), 'v')});
  };
  EXPECT_TRUE(accepted(with_head_of(limits::head_bytes_max)));
  EXPECT_EQ(status_of(with_head_of(limits::head_bytes_max + 1)), 431);
  EXPECT_EQ(status_of(with_head_of(100'000)), 431);
  EXPECT_EQ(status_of(with_head_of(limits::head_bytes_max + 1).substr(0, limits::head_bytes_max)),
            431)
      << "before the head is complete";

  std::vector<std::string> lines(limits::head_fields_max - 1, "a: b");
  EXPECT_TRUE(accepted(request(lines)));
  lines.emplace_back("a: b");
  EXPECT_EQ(status_of(request(lines)), 431);
}

TEST(RequestHead, a_refused_head_leaves_nothing_to_trust) {
  RequestHead head;
  std::size_t scanned = 0;
  const std::string good = request({"Content-Length: 5"});
  ASSERT_TRUE(parse_request_head(good, scanned, head));
  const std::string bad = request({"Content-Length: 9", "Bad Name: x"});
  ASSERT_FALSE(parse_request_head(bad, scanned, head));
  EXPECT_TRUE(head.fields.empty());
  EXPECT_TRUE(head.method.empty());
  EXPECT_TRUE(head.host.empty());
  EXPECT_EQ(head.framing, Framing::none);
}

TEST(RequestHead, capacity_is_kept_from_head_to_head) {
  RequestHead head;
  std::size_t scanned = 0;
  const std::string bytes = request({"A: 1", "B: 2", "C: 3"});
  ASSERT_TRUE(parse_request_head(bytes, scanned, head));
  const auto* place = head.fields.data();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(parse_request_head(bytes, scanned, head));
    ASSERT_EQ(head.fields.data(), place);
  }
}

/// Every prefix of a good head asks for more, and the end of the head is found in any pieces.
TEST(RequestHead, a_head_may_come_byte_by_byte) {
  const std::string bytes =
      "\r\n" + request({"Connection: close", "Expect: 100-continue", "Content-Length: 5",
                        "X-Long: " + std::string(300, 'x') + " : \t" + std::string(300, 'y')},
                       "POST /a?b HTTP/1.1");
  RequestHead head;
  std::size_t scanned = 0;
  for (std::size_t fed = 0; fed < bytes.size(); ++fed) {
    const auto result = parse_request_head({bytes.data(), fed}, scanned, head);
    ASSERT_TRUE(result) << fed << ' ' << result.error().detail;
    ASSERT_FALSE(*result) << fed;
  }
  const auto result = parse_request_head(bytes, scanned, head);
  ASSERT_TRUE(result && *result);
  EXPECT_EQ(**result, bytes.size());
  EXPECT_EQ(head.fields.size(), 5u);
  EXPECT_FALSE(head.keep_alive);
}

/// Broken heads, fed whole, byte by byte and in random pieces: one verdict, and a refusal that came
/// early never changes.
TEST(RequestHead, pieces_do_not_change_the_verdict) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const std::string good =
      request({"Connection: close, x", "Content-Length: 5", "X-Field: some value", "Expect: x",
               "Transfer-Encoding: chunked", "X-More: " + std::string(40, 'v')},
              "POST http://a/b?c HTTP/1.1");
  const std::string_view nasty("\r\n\0\t :#\x7f\xff,;/", 12);
  const auto pick = [&](std::size_t bound) { return random() % bound; };
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (std::size_t changes = 1 + pick(3); changes > 0; --changes) {
      const std::size_t at = pick(bytes.size());
      if (pick(3) == 0)
        bytes.erase(at, 1 + pick(4));
      else if (pick(2) == 0)
        bytes.insert(at, 1, nasty[pick(nasty.size())]);
      else
        bytes[at] = nasty[pick(nasty.size())];
    }
    if (pick(20) == 0) bytes.insert(pick(bytes.size()), 8192, 'a');
    if (pick(20) == 0) bytes.insert(pick(bytes.size()), 16384, ' ');
    const auto whole = parse(bytes);
    for (const std::size_t piece_max : {std::size_t{1}, std::size_t{200}}) {
      RequestHead head;
      std::size_t scanned = 0, fed = 0;
      HeadResult result;
      do {
        fed = std::min(bytes.size(), fed + 1 + pick(piece_max));
        result = parse_request_head({bytes.data(), fed}, scanned, head);
      } while (result && !*result && fed < bytes.size());
      ASSERT_EQ(result ? 0 : result.error().status, whole.status) << bytes;
      ASSERT_EQ(result ? "" : result.error().detail, whole.detail) << bytes;
      ASSERT_EQ(result && *result, whole.complete) << bytes;
      if (whole.complete) {
        ASSERT_EQ(**result, whole.bytes) << bytes;
      }
    }
  }
}

TEST(FieldSyntax, tokens_and_values_and_lists) {
  EXPECT_TRUE(is_token("a-Z0!"));
  EXPECT_FALSE(is_token(""));
  EXPECT_FALSE(is_token("a b"));
  EXPECT_TRUE(is_field_value(""));
  EXPECT_TRUE(is_field_value("a\tb \xff"));
  for (const char* value : {" a", "a ", "\ta", "a\r", "a\nb", "a\x7f-b", "a\x01"}) {
    EXPECT_FALSE(is_field_value(value));
  }
  EXPECT_FALSE(is_field_value(std::string_view("a\0b", 3)));
  EXPECT_TRUE(same_name("X-a[", "x-A["));
  EXPECT_FALSE(same_name("[", "{"));
  EXPECT_FALSE(same_name("a", "ab"));
  std::vector<std::string> members;
  each_list_member(" a ,, b\t,c d,", [&](std::string_view m) { members.emplace_back(m); });
  EXPECT_EQ(members, (std::vector<std::string>{"a", "b", "c d"}));
}

}  // namespace
}  // namespace idem::http
