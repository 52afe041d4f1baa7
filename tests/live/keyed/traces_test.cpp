#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "support/admin.hpp"
#include "support/async.hpp"
#include "support/scripted_upstream.hpp"

/// Spans as a collector receives them, and what a collector that fails may cost.
namespace idem::test {
namespace {

const std::string caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const std::string caller_trace = "4bf92f3577b34da6a3ce929d0e0e4736";

struct SeenSpan {
  std::string trace{};
  std::string id{};
  std::string parent{};
  std::string name{};
  std::int64_t kind = 0;
  bool has_error = false;
  std::string link{};  ///< "TRACE SPAN"
  std::map<std::string, std::string> attributes{};
};

std::vector<SeenSpan> spans_in(const std::string& body) {
  std::vector<SeenSpan> seen;
  const Json all = parse_json(body).value_or(Json{});
  for (const Json& resource : all["resourceSpans"].items) {
    for (const Json& scope : resource["scopeSpans"].items) {
      for (const Json& span : scope["spans"].items) {
        SeenSpan one{span["traceId"].string, span["spanId"].string, span["parentSpanId"].string,
                     span["name"].string, span["kind"].integer};
        one.has_error = span["status"]["code"].integer == 2;
        for (const Json& link : span["links"].items) {
          one.link = link["traceId"].string + " " + link["spanId"].string;
        }
        for (const Json& attribute : span["attributes"].items) {
          const Json& value = attribute["value"];
          one.attributes[attribute["key"].string] =
              value.has("intValue") ? value["intValue"].string : value["stringValue"].string;
        }
        seen.push_back(std::move(one));
      }
    }
  }
  return seen;
}

/// An OTLP receiver that keeps what it gets.
class Collector {
 public:
  explicit Collector(std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
      : answer_(std::move(answer)), server_([this](UpstreamConnection& connection) {
          while (auto request = connection.read_request()) {
            {
              const std::lock_guard lock(mutex_);
              bodies_.push_back(request->body);
              for (const auto& field : request->head.fields) {
                heads_.push_back(field.name + ": " + field.value);
              }
            }
            changed_.notify_all();
            if (!connection.write(answer_)) return;
          }
        }) {}

  std::string url() const { return "http://" + server_.address(); }

  /// All spans so far, once those of so many requests are there.
  std::vector<SeenSpan> wait_for_requests(std::size_t requests) {
    std::vector<SeenSpan> seen;
    const auto all_there = [&] {
      seen.clear();
      for (const auto& body : bodies_) std::ranges::move(spans_in(body), std::back_inserter(seen));
      return owns(seen) >= requests;
    };
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), all_there);
    return seen;
  }
  std::string everything() {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const auto& one : bodies_) all += one;
    for (const auto& one : heads_) all += one;
    return all;
  }

 private:
  static std::size_t owns(const std::vector<SeenSpan>& spans) {
    return static_cast<std::size_t>(std::ranges::count_if(
        spans, [](const SeenSpan& span) { return span.kind == 2 || span.kind == 5; }));
  }

  const std::string answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> bodies_;
  std::vector<std::string> heads_;
  ScriptedUpstream server_;
};

/// The spans of one request: its own and those below it.
struct RequestSpans {
  SeenSpan own{};
  std::map<std::string, SeenSpan> phases{};
};

/// In the order in which they ended.
std::vector<RequestSpans> by_request(const std::vector<SeenSpan>& spans) {
  std::vector<RequestSpans> requests;
  for (const auto& span : spans) {
    if (span.kind == 2 || span.kind == 5) {
      requests.push_back({span, {}});
    } else if (requests.empty() || requests.back().own.id != span.parent) {
      ADD_FAILURE() << span.name << " has no parent here";
    } else {
      requests.back().phases[span.name] = span;
    }
  }
  return requests;
}

class Traces : public Operated {
 protected:
  std::vector<std::string> flags() const override {
    std::vector<std::string> all{"--traces",         collector_->url(),
                                 "--traces-one-in",  "1",
                                 "--traces-service", "payments",
                                 "--trace-link",     "https://traces.internal/{trace_id}?a=1"};
    all.insert(all.end(), more_flags_.begin(), more_flags_.end());
    return all;
  }
  /// Once they are at least so many.
  double spans(std::string_view result, double least = 0) {
    return metric_from(fmt::format("idem_spans_total{{result=\"{}\"}}", result), least);
  }
  std::vector<RequestSpans> requests(std::size_t count) {
    return by_request(collector_->wait_for_requests(count));
  }

  std::unique_ptr<Collector> collector_ = std::make_unique<Collector>();
  std::vector<std::string> more_flags_;
};

TEST_F(Traces, go_from_the_client_to_the_upstream_through_each_phase) {
  auto request = with(with(charge("k"), "traceparent", caller), "tracestate", "vendor=1");
  request.target = "/echo";
  const auto answer = ask(request);
  EXPECT_EQ(answer.status, 201);
  const auto seen = requests(1);
  ASSERT_EQ(seen.size(), 1U);
  const auto& [own, phases] = seen[0];
  EXPECT_EQ(own.trace, caller_trace);
  EXPECT_EQ(own.parent, "00f067aa0ba902b7");
  EXPECT_EQ(own.attributes.at("http.response.status_code"), "201");
  EXPECT_EQ(own.attributes.at("idem.reserve"), "created");
  EXPECT_EQ(own.attributes.at("idem.ending"), "completed");
  EXPECT_FALSE(own.has_error);
  ASSERT_EQ(phases.size(), 4U);
  for (const auto* name : {"fingerprint", "reserve", "dispatch", "settle"}) {
    ASSERT_TRUE(phases.contains(name)) << name;
    EXPECT_EQ(phases.at(name).trace, caller_trace);
    EXPECT_FALSE(phases.at(name).has_error) << name;
  }
  const auto& dispatch = phases.at("dispatch");
  EXPECT_EQ(dispatch.attributes.at("http.response.status_code"), "201");
  EXPECT_EQ(echoed(answer, "traceparent"),
            std::vector{fmt::format("00-{}-{}-01", caller_trace, dispatch.id)});
  EXPECT_EQ(echoed(answer, "tracestate"), std::vector<std::string>{"vendor=1"});
  EXPECT_NE(collector_->everything().find(R"("stringValue":"payments")"), std::string::npos);
}

TEST_F(Traces, a_replay_links_to_the_request_that_ran) {
  const auto first = ask(with(charge("k"), "traceparent", caller));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_TRUE(replays(first, ask(charge("k")))) << "from the gateway's memory";
  EXPECT_EQ(requests(3).size(), 3U) << "a killed process loses what it has not sent";
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  const auto later = ask(charge("k"));
  EXPECT_TRUE(replays(first, later));
  EXPECT_EQ(later.raw.find("Idem-"), std::string::npos) << later.raw;
  EXPECT_EQ(later.raw.find(caller_trace), std::string::npos) << later.raw;
  const auto seen = requests(4);
  ASSERT_EQ(seen.size(), 4U);
  const std::string ran = caller_trace + " " + seen[0].own.id;
  EXPECT_EQ(seen[0].own.link, "");
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].own.link, ran) << i;
    EXPECT_NE(seen[i].own.trace, caller_trace) << "each has a trace of its own";
    EXPECT_EQ(seen[i].own.attributes.at("idem.reserve"), "replay") << i;
    EXPECT_FALSE(seen[i].phases.contains("dispatch")) << i;
  }
  const Json record = read("/v1/keys/" + only("completed")["ref"].string);
  EXPECT_EQ(record["trace_id"].string, caller_trace);
  EXPECT_EQ(record["trace_link"].string, "https://traces.internal/" + caller_trace + "?a=1");
  EXPECT_EQ(record["upstream_link"].kind, Json::Kind::null) << "no such setting";
  for (const Json& field : record["response"]["headers"].items) {
    EXPECT_NE(field.items.at(0).string, "Idem-Trace");
  }
}

TEST_F(Traces, a_wait_is_a_span_and_links_to_what_it_waited_for) {
  gateway_.reset();
  more_flags_ = {"--mode", "wait"};
  gateway_ = std::make_unique<Gateway>(options(provider_->address()));
  ASSERT_TRUE(gateway_->running());
  Response first;
  std::thread running([&] { first = ask(charge("k", "hold=h")); });
  ASSERT_TRUE(provider_->wait_held("h", 1));
  Response second;
  std::thread waiting([&] { second = ask(charge("k")); });
  EXPECT_EQ(metric_from("idem_reserve_total{outcome=\"in_progress\"}", 1), 1);
  provider_->release("h");
  running.join();
  waiting.join();
  EXPECT_TRUE(replays(first, second));
  const auto seen = requests(2);
  ASSERT_EQ(seen.size(), 2U);
  const auto waited = std::ranges::find_if(
      seen, [](const RequestSpans& one) { return one.phases.contains("wait"); });
  ASSERT_NE(waited, seen.end());
  const auto& ran = waited == seen.begin() ? seen[1] : seen[0];
  EXPECT_EQ(waited->own.link, ran.own.trace + " " + ran.own.id);
}

TEST_F(Traces, an_unknown_outcome_is_an_error_and_its_log_line_names_the_trace) {
  EXPECT_EQ(ask(with(charge("k", "drop-after"), "traceparent", caller)).status, 502);
  EXPECT_EQ(ask(charge("down", "refuse=429")).status, 429);
  const auto seen = requests(2);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[0].own.has_error);
  EXPECT_TRUE(seen[0].phases.at("dispatch").has_error);
  EXPECT_EQ(seen[0].own.attributes.at("idem.ending"), "unknown");
  EXPECT_FALSE(seen[1].own.has_error) << "the client's or the API's refusal";
  EXPECT_EQ(seen[1].own.attributes.at("idem.ending"), "released");
  const auto line = gateway_->process().wait_for_line("outcome_unknown");
  ASSERT_TRUE(line);
  EXPECT_NE(line->find("trace_id=" + caller_trace), std::string::npos) << *line;
}

TEST_F(Traces, a_refusal_before_the_exchange_has_its_status) {
  EXPECT_EQ(ask(without(charge("k"), "Idempotency-Key")).status, 400);
  EXPECT_EQ(ask(without(charge("k"), "X-Tenant-Id")).status, 401);
  const auto seen = requests(2);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].own.attributes.at("http.response.status_code"), "400");
  EXPECT_EQ(seen[1].own.attributes.at("http.response.status_code"), "401");
  for (const auto& one : seen) EXPECT_TRUE(one.phases.empty());
}

TEST_F(Traces, without_a_tracing_caller_nobody_is_said_to_be_one) {
  auto request = with(with(charge("k"), "traceparent", caller), "traceparent", caller);
  request = with(request, "tracestate", "vendor=1");
  request.target = "/echo";
  const auto answer = ask(request);
  const auto parents = echoed(answer, "traceparent");
  ASSERT_EQ(parents.size(), 1U) << "two of them count as none";
  EXPECT_EQ(parents[0].find(caller_trace), std::string::npos);
  EXPECT_TRUE(echoed(answer, "tracestate").empty());
  EXPECT_EQ(requests(1).at(0).own.parent, "");
}

TEST_F(Traces, an_unrecorded_caller_stays_unrecorded) {
  auto request = with(charge("k"), "traceparent", caller.substr(0, 53) + "00");
  request.target = "/echo";
  const auto answer = ask(request);
  EXPECT_EQ(echoed(answer, "traceparent"), std::vector{caller.substr(0, 53) + "00"});
  ask(charge("another"));
  const auto seen = requests(1);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_NE(seen[0].own.trace, caller_trace);
}

TEST_F(Traces, a_stored_request_continues_the_trace_of_its_accept) {
  gateway_.reset();
  more_flags_ = {"--mode", "async"};
  gateway_ = std::make_unique<Gateway>(options(provider_->address()));
  ASSERT_TRUE(gateway_->running());
  const auto accepted = ask(with(charge("k"), "traceparent", caller));
  EXPECT_EQ(accepted.status, 202);
  const auto seen = requests(2);
  ASSERT_EQ(seen.size(), 2U);
  const auto& accept = seen[0].own.kind == 2 ? seen[0] : seen[1];
  const auto& run = seen[0].own.kind == 2 ? seen[1] : seen[0];
  EXPECT_EQ(accept.own.trace, caller_trace);
  EXPECT_EQ(run.own.kind, 5);
  EXPECT_EQ(run.own.trace, caller_trace);
  EXPECT_EQ(run.own.parent, accept.own.id);
  EXPECT_TRUE(run.phases.contains("dispatch"));
  EXPECT_TRUE(run.phases.contains("mark"));
}

// The header file's token goes to the collector and nowhere else; nothing of the request goes to
// the collector.
TEST_F(Traces, V33_nothing_secret_is_in_a_span) {
  const auto token = dir_.path() / "token";
  std::ofstream(token) << "Authorization: Bearer canarytoken1\n";
  std::filesystem::permissions(token, std::filesystem::perms::owner_read);
  gateway_.reset();
  more_flags_ = {"--traces-header-file", token.string()};
  gateway_ = std::make_unique<Gateway>(options(provider_->address()));
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  auto request = charge("canarykey2@example.org", "", R"({"card":"canarybody3"})");
  request.target = "/people/canarypath4/charges?token=canaryquery5";
  request.fields[0].value = "canaryscope6";
  request = with(request, "Authorization", "Bearer canarycredential7");
  ask(request);
  ask(request);
  EXPECT_EQ(requests(2).size(), 2U);
  const std::string all = collector_->everything();
  EXPECT_NE(all.find("Authorization: Bearer canarytoken1"), std::string::npos) << all;
  for (const auto* canary : {"canarykey2", "canarybody3", "canarypath4", "canaryquery5",
                             "canaryscope6", "canarycredential7"}) {
    EXPECT_EQ(all.find(canary), std::string::npos) << canary << " is in " << all;
  }
  EXPECT_EQ(gateway_->process().output().find("canarytoken1"), std::string::npos);
}

TEST_F(Traces, a_stop_sends_what_is_left) {
  ask(charge("k"));
  EXPECT_EQ(gateway_->terminate(), 0);
  EXPECT_EQ(requests(1).size(), 1U);
}

class BadCollector : public Traces {
 protected:
  void begin(std::unique_ptr<Collector> collector) {
    gateway_.reset();
    collector_ = std::move(collector);
    gateway_ = std::make_unique<Gateway>(options(provider_->address()));
    ASSERT_TRUE(gateway_->running());
  }
  void serve_some() {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(charge(fmt::format("k{}", i))).status, 201);
    EXPECT_EQ(provider_->ledger().effects, 20);
  }
};

TEST_F(BadCollector, one_that_refuses_costs_spans_and_no_request) {
  begin(std::make_unique<Collector>("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
  serve_some();
  EXPECT_EQ(spans("refused", 100), 100) << "twenty requests of five spans";
  EXPECT_EQ(spans("sent"), 0);
  EXPECT_TRUE(gateway_->process().wait_for_line("traces_failing"));
}

TEST_F(BadCollector, one_that_takes_a_part_says_so) {
  const std::string some = R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"quota"}})";
  begin(std::make_unique<Collector>(
      fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", some.size(), some)));
  ask(charge("k"));
  EXPECT_EQ(spans("refused", 2), 2);
  EXPECT_EQ(spans("sent", 3), 3);
}

TEST_F(BadCollector, one_that_is_gone_costs_spans_and_no_request) {
  gateway_.reset();
  const auto given = options(provider_->address());
  collector_.reset();
  gateway_ = std::make_unique<Gateway>(given);
  ASSERT_TRUE(gateway_->running());
  serve_some();
  const auto line = gateway_->process().wait_for_line("traces_failing");
  ASSERT_TRUE(line);
  EXPECT_NE(line->find("reason=connect"), std::string::npos) << *line;
  EXPECT_EQ(spans("not_sent", 100), 100);
  EXPECT_EQ(gateway_->terminate(), 0);
}

// It accepts connections and never answers.
TEST_F(BadCollector, one_that_hangs_delays_neither_requests_nor_the_stop) {
  Gate reached;
  Gate gate;
  ScriptedUpstream silent([&](UpstreamConnection& connection) {
    connection.read_some();
    reached.open();
    gate.wait();
  });
  gateway_.reset();
  auto given = options(provider_->address());
  given.flags = {"--traces", "http://" + silent.address(), "--traces-one-in", "1"};
  gateway_ = std::make_unique<Gateway>(given);
  ASSERT_TRUE(gateway_->running());
  serve_some();
  EXPECT_TRUE(reached.wait());
  EXPECT_EQ(gateway_->terminate(), 0) << "it does not wait for the gate, which is shut";
  gate.open();
}

}  // namespace
}  // namespace idem::test
