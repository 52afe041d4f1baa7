#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/scripted_upstream.hpp"

// Raw requests that other projects collected, over TCP against the running gateway. The budgets are
// those of the data's README; every miss is printed.

namespace idem::test {
namespace {

struct Case {
  std::string id;
  std::string bytes;
};

struct Cases {
  std::vector<Case> reject;
  std::vector<Case> accept;
};

/// Http11Probe says what it expects in words: a wish for 2xx alone is "accept", a list without any
/// 2xx is "reject", everything else is either.
void add_probe_case(const Json& entry, Cases& cases) {
  const Case probe{"probe/" + entry["id"].string, entry["rawRequest"].string};
  const auto& wish = entry["expected"].string;
  const bool success =
      wish.find("2xx") != std::string::npos || wish.find("200") != std::string::npos;
  if (wish == "2xx" || wish == "2xx or close" || wish == "2xx + close") {
    cases.accept.push_back(probe);
  } else if (!success && wish != "!101") {
    cases.reject.push_back(probe);
  }
}

Cases read_cases(const std::filesystem::path& data) {
  Cases cases;
  const auto either = parse_json(read_file(data / "either.json")).value_or(Json{});
  for (const auto* suite : {"gunicorn-requests", "llhttp", "Http11Probe"}) {
    const auto list = parse_json(read_file(data / suite / "cases.json")).value_or(Json{});
    for (const auto& entry : list.items) {
      if (either.has(entry["id"].string) || either.has("probe/" + entry["id"].string)) continue;
      if (entry.has("rawRequest")) add_probe_case(entry, cases);
      // A case that needs a setting of its own parser says nothing about another server.
      if (!entry.has("expect") || !entry["needs_cfg"].items.empty()) continue;
      const auto& raw = entry.has("raw_host_b64") ? entry["raw_host_b64"] : entry["raw_b64"];
      const Case one{entry["id"].string, decode_base64(raw.string)};
      if (entry["expect"].string == "reject") cases.reject.push_back(one);
      if (entry["expect"].string == "accept") cases.accept.push_back(one);
    }
  }
  return cases;
}

class Corpora : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    upstream_ = std::make_unique<ScriptedUpstream>(ScriptedUpstream::answer_all);
    gateway_ = std::make_unique<Gateway>(GatewayOptions{.upstream = upstream_->address(),
                                                        .store = dir_.path() / "idem.db",
                                                        .flags = {"--require-key", "false"}});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  /// The status of the final answer to the first request; 0 for none.
  static int final_status(std::string_view bytes) {
    while (const auto head = parse_head(bytes)) {
      const auto space = head->start_line.find(' ');
      const int status =
          space == std::string::npos ? 0 : std::atoi(head->start_line.c_str() + space + 1);
      if (status >= 200) return status;
      bytes.remove_prefix(head->bytes);
    }
    return 0;
  }

  TempDir dir_;
  std::unique_ptr<ScriptedUpstream> upstream_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(Corpora, malformed_requests_are_refused_and_reach_nobody) {
  IDEM_NEED_EXTERNAL(data);
  const auto cases = read_cases(data).reject;
  int misses = 0;
  for (const auto& one : cases) {
    const int before = upstream_->requests();
    Connection client(gateway_->address());
    ASSERT_TRUE(client.open()) << "the gateway is gone after " << one.id;
    client.send_raw(one.bytes);
    client.socket().half_close();  // A request that waits for more now ends instead.
    const int status = final_status(client.read_until_close());
    const int passed = upstream_->requests() - before;
    if (passed == 0 && (status == 0 || status >= 400)) continue;
    ++misses;
    fmt::print("accepted: {} (status {}, {} upstream)\n", one.id, status, passed);
  }
  fmt::print("must be refused: {} of {} accepted\n", misses, cases.size());
  EXPECT_GE(cases.size(), 147U);
  EXPECT_LE(misses, 2);
}

TEST_F(Corpora, well_formed_requests_are_not_refused) {
  IDEM_NEED_EXTERNAL(data);
  const auto cases = read_cases(data).accept;
  // A refusal comes within milliseconds; a case that is still silent waits for the rest of a
  // message.
  constexpr int silent_milliseconds = 250;
  int misses = 0;
  for (const auto& one : cases) {
    Connection client(gateway_->address());
    ASSERT_TRUE(client.open()) << "the gateway is gone after " << one.id;
    client.send_raw(one.bytes);
    std::string bytes;
    bool open = true;
    while (open && final_status(bytes) == 0 &&
           client.socket().readable_within(silent_milliseconds)) {
      open = client.socket().receive(bytes) == Socket::Received::bytes;
    }
    const int status = final_status(bytes);
    if (status == 0 ? open : status < 400) continue;
    ++misses;
    fmt::print("refused: {} (status {})\n{}\n", one.id, status, bytes);
  }
  fmt::print("must not be refused: {} of {} refused\n", misses, cases.size());
  EXPECT_GE(cases.size(), 60U);
  EXPECT_LE(misses, 1);
}

/// A field name with everything but its letters dropped, in lower case (rule P11).
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) letters += static_cast<char>(c | 0x20);
  }
  return letters;
}

/// Why this head would be framed differently by two servers; empty when it would not.
std::string framing_doubt(const Head& head) {
  int lengths = 0;
  int codings = 0;
  for (const auto& field : head.fields) {
    if (same_name(field.name, "Content-Length")) {
      ++lengths;
      const bool digits =
          !field.value.empty() && std::all_of(field.value.begin(), field.value.end(),
                                              [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) return "Content-Length is no number";
    } else if (same_name(field.name, "Transfer-Encoding")) {
      ++codings;
      if (field.value != "chunked") return "Transfer-Encoding is not chunked";
    } else {
      const auto letters = letters_of(field.name);
      if (letters == "contentlength" || letters == "transferencoding") return "a look-alike name";
    }
  }
  return lengths + codings == 1 ? "" : "not exactly one framing field";
}

TEST_F(Corpora, P08_P11_no_smuggled_request_arrives) {
  IDEM_NEED_EXTERNAL(data);
  const auto list =
      parse_json(read_file(data / "portswigger-desync" / "requests.json")).value_or(Json{});
  EXPECT_GE(list.items.size(), 410U);
  for (const auto& entry : list.items) {
    Connection client(gateway_->address());
    ASSERT_TRUE(client.open()) << "the gateway is gone after " << entry["id"].string;
    client.send_raw(decode_base64(entry["raw_b64"].string));
    client.socket().half_close();
    client.read_until_close();
  }
  gateway_->kill();
  gateway_->process().wait();
  int smuggled = 0;
  int doubtful = 0;
  int forwarded = 0;
  for (const auto& stream : upstream_->received()) {
    std::string_view rest = stream;
    while (const auto request = parse_request(rest)) {
      ++forwarded;
      rest.remove_prefix(request->bytes);
      if (request->target().find("smuggled") != std::string::npos) ++smuggled;
      const auto doubt = framing_doubt(request->head);
      if (doubt.empty()) continue;
      ++doubtful;
      fmt::print("{}:\n{}\n", doubt, request->head.start_line);
    }
    // The rest is a request cut short; it must not be the smuggled one either.
    if (rest.starts_with("GET /smuggled")) ++smuggled;
  }
  fmt::print("desync: {} attempts, {} forwarded, {} smuggled, {} doubtful\n", list.items.size(),
             forwarded, smuggled, doubtful);
  EXPECT_EQ(smuggled, 0);
  EXPECT_EQ(doubtful, 0);
}

}  // namespace
}  // namespace idem::test
