// Requests that nobody here wrote, judged by the parser alone: the head, then its body by the
// framing that the head gave. The same sets run over TCP against the whole gateway in the live
// lane.
#include "http/chunked.hpp"
#include "http/head.hpp"
#include "support/external_data.hpp"
#include "support/json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace idem::http {
namespace {

constexpr int rejects_accepted_max = 2;
constexpr int accepts_refused_max = 1;

struct Case {
  std::string id;
  std::string bytes;
  bool must_reject = false;
  bool must_accept = false;
  std::string method;  ///< Where the suite says what the first request is.
  std::string target;
  std::string body;
};

struct Message {
  std::string method;
  std::string target;
  std::string body;
  bool complete = false;
  Refusal refusal{0, ""};
};

test::Json read_json(const std::filesystem::path& file) {
  const auto json = test::parse_json(test::read_file(file));
  if (!json) ADD_FAILURE() << file << " is not JSON";
  return json.value_or(test::Json{});
}

std::set<std::string> either_ids(const std::filesystem::path& folder) {
  std::set<std::string> ids;
  const test::Json all = read_json(folder / "either.json");
  for (const auto& member : all.members) ids.insert(member.first);
  return ids;
}

/// gunicorn-requests and llhttp. Cases that only hold under a setting of gunicorn's are left out.
void add_parser_suite(const std::filesystem::path& file, const std::set<std::string>& either,
                      std::vector<Case>& cases) {
  const test::Json all = read_json(file);
  for (const test::Json& item : all.items) {
    Case one;
    one.id = item["id"].string;
    if (either.contains(one.id) || !item["needs_cfg"].items.empty()) continue;
    one.bytes =
        test::decode_base64(item[item.has("raw_host_b64") ? "raw_host_b64" : "raw_b64"].string);
    one.must_reject = item["expect"].string == "reject";
    one.must_accept = item["expect"].string == "accept";
    const auto& parsed = item["parsed"].items;
    // One of the bodies was written as text that cannot be turned back into bytes.
    if (!parsed.empty() && parsed[0]["body"].has("b64")) {
      one.method = parsed[0]["method"].string;
      one.target = parsed[0]["uri"].string;
      one.body = test::decode_base64(parsed[0]["body"]["b64"].string);
    }
    cases.push_back(std::move(one));
  }
}

/// Http11Probe says in words which answers it accepts; a 2xx among them means that we may choose.
void add_probe_suite(const std::filesystem::path& file, const std::set<std::string>& either,
                     std::vector<Case>& cases) {
  const std::set<std::string> accepting = {"2xx", "2xx or close", "2xx + close"};
  const test::Json all = read_json(file);
  for (const test::Json& item : all.items) {
    Case one;
    one.id = "probe/" + item["id"].string;
    one.bytes = item["rawRequest"].string;
    if (either.contains(one.id)) continue;
    const std::string& expected = item["expected"].string;
    one.must_accept = accepting.contains(expected);
    one.must_reject = expected.starts_with('4') && !expected.contains('2');
    cases.push_back(std::move(one));
  }
}

std::vector<Case> suites(const std::filesystem::path& folder) {
  std::vector<Case> cases;
  const auto either = either_ids(folder);
  add_parser_suite(folder / "gunicorn-requests" / "cases.json", either, cases);
  add_parser_suite(folder / "llhttp" / "cases.json", either, cases);
  add_probe_suite(folder / "Http11Probe" / "cases.json", either, cases);
  return cases;
}

std::vector<Case> desync_attempts(const std::filesystem::path& folder) {
  std::vector<Case> cases;
  const test::Json all = read_json(folder / "portswigger-desync" / "requests.json");
  for (const test::Json& item : all.items) {
    Case& one = cases.emplace_back();
    one.id = item["id"].string;
    one.bytes = test::decode_base64(item["raw_b64"].string);
  }
  return cases;
}

/// Feeds `stream` to the head parser `piece` bytes at a time, as a connection would.
HeadResult read_head(std::string_view stream, std::size_t piece, RequestHead& head) {
  std::size_t scanned = 0;
  for (std::size_t fed = 0;;) {
    fed = std::min(stream.size(), fed + piece);
    HeadResult result = parse_request_head(stream.substr(0, fed), scanned, head);
    if (!result || *result || fed == stream.size()) return result;
  }
}

/// Takes the body off `stream`; false when it is cut off or refused.
bool read_body(std::string_view& stream, std::size_t piece, const RequestHead& head,
               Message& message) {
  if (head.framing == Framing::none) return true;
  if (head.framing == Framing::content_length) {
    const auto taken = std::min<std::uint64_t>(stream.size(), head.content_length);
    message.body = stream.substr(0, taken);
    stream.remove_prefix(taken);
    return taken == head.content_length;
  }
  ChunkDecoder decoder;
  while (true) {
    const auto step = decoder.feed(stream.substr(0, piece));
    if (!step) {
      message.refusal = step.error();
      return false;
    }
    message.body += step->data;
    stream.remove_prefix(step->consumed);
    if (step->finished) return true;
    if (stream.empty()) return false;
  }
}

/// The requests that a server would read from the bytes of one connection: those up to the first
/// that is refused, cut off or the last.
std::vector<Message> connection(std::string_view stream, std::size_t piece) {
  std::vector<Message> messages;
  RequestHead head;
  while (!stream.empty()) {
    Message message;
    const HeadResult result = read_head(stream, piece, head);
    if (!result) message.refusal = result.error();
    if (!result || !*result) {
      messages.push_back(std::move(message));
      break;
    }
    message.method = head.method;
    message.target = head.target;
    stream.remove_prefix(**result);
    message.complete = read_body(stream, piece, head, message);
    messages.push_back(std::move(message));
    if (!messages.back().complete || !head.keep_alive) break;
  }
  return messages;
}

std::string printable(std::string_view bytes) {
  std::string out;
  for (const char c : bytes.substr(0, 300)) {
    if (c == '\r')
      out += "\\r";
    else if (c == '\n')
      out += "\\n";
    else if (c < 0x20 || c >= 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

void print_miss(const char* what, const Case& one, const Refusal& refusal) {
  fmt::print("[  MISS  ] {} {}: {} {}\n           {}\n", what, one.id, refusal.status,
             refusal.detail, printable(one.bytes));
}

TEST(Corpus, requests_of_other_suites_are_judged_right) {
  IDEM_NEED_EXTERNAL(folder);
  int rejects = 0, accepts = 0, rejects_accepted = 0, accepts_refused = 0;
  for (const Case& one : suites(folder)) {
    const auto messages = connection(one.bytes, one.bytes.size());
    const bool accepted = !messages.empty() && messages[0].complete;
    const Refusal refusal = messages.empty() ? Refusal{0, ""} : messages[0].refusal;
    rejects += one.must_reject ? 1 : 0;
    accepts += one.must_accept ? 1 : 0;
    if (one.must_reject && accepted) {
      ++rejects_accepted;
      print_miss("accepted", one, refusal);
    }
    if (one.must_accept && refusal.status != 0) {
      ++accepts_refused;
      print_miss("refused", one, refusal);
    }
  }
  fmt::print("{} to reject, {} accepted; {} to accept, {} refused\n", rejects, rejects_accepted,
             accepts, accepts_refused);
  EXPECT_GT(rejects, 100);
  EXPECT_GT(accepts, 50);
  EXPECT_LE(rejects_accepted, rejects_accepted_max);
  EXPECT_LE(accepts_refused, accepts_refused_max);
}

TEST(Corpus, accepted_requests_are_understood_as_their_suite_does) {
  IDEM_NEED_EXTERNAL(folder);
  int compared = 0;
  for (const Case& one : suites(folder)) {
    if (!one.must_accept || one.method.empty()) continue;
    const auto messages = connection(one.bytes, one.bytes.size());
    ASSERT_FALSE(messages.empty()) << one.id;
    if (messages[0].refusal.status != 0) continue;
    ++compared;
    EXPECT_EQ(messages[0].method, one.method) << one.id;
    EXPECT_EQ(messages[0].target, one.target) << one.id;
    EXPECT_EQ(messages[0].body, one.body) << one.id;
  }
  EXPECT_GT(compared, 20);
}

TEST(Corpus, P08_no_desync_attempt_brings_a_second_request_in) {
  IDEM_NEED_EXTERNAL(folder);
  int refused = 0, desyncs = 0;
  const auto attempts = desync_attempts(folder);
  for (const Case& one : attempts) {
    const auto messages = connection(one.bytes, one.bytes.size());
    ASSERT_FALSE(messages.empty()) << one.id;
    if (messages[0].refusal.status != 0) ++refused;
    for (const Message& message : messages) {
      if (message.target != "/smuggled") continue;
      ++desyncs;
      print_miss("smuggled", one, message.refusal);
    }
  }
  fmt::print("{} attempts, {} refused, {} smuggled\n", attempts.size(), refused, desyncs);
  EXPECT_GT(attempts.size(), 400u);
  EXPECT_EQ(desyncs, 0);
}

TEST(Corpus, bytes_that_come_one_by_one_are_judged_like_the_whole) {
  IDEM_NEED_EXTERNAL(folder);
  auto cases = suites(folder);
  std::ranges::move(desync_attempts(folder), std::back_inserter(cases));
  for (const Case& one : cases) {
    const auto whole = connection(one.bytes, one.bytes.size());
    for (const std::size_t piece : {1u, 2u, 7u}) {
      const auto pieces = connection(one.bytes, piece);
      ASSERT_EQ(pieces.size(), whole.size()) << one.id;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(pieces[i].target, whole[i].target) << one.id;
        EXPECT_EQ(pieces[i].body, whole[i].body) << one.id;
        EXPECT_EQ(pieces[i].complete, whole[i].complete) << one.id;
        EXPECT_EQ(pieces[i].refusal.status, whole[i].refusal.status) << one.id;
        EXPECT_EQ(pieces[i].refusal.detail, whole[i].refusal.detail) << one.id;
      }
    }
  }
}

}  // namespace
}  // namespace idem::http
