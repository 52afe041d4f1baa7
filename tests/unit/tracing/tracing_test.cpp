#include "json/value.hpp"
#include "tracing/otlp.hpp"
#include "tracing/tracer.hpp"

#include <idem/record.hpp>
#include <idem/trace_limits.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace idem::tracing {
namespace {

using metrics::SpanCounts;
using metrics::Spanned;

const std::string parent_text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const std::string unsampled_text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

class Traced : public testing::Test {
 protected:
  std::shared_ptr<SpanCounts> counts_ = std::make_shared<SpanCounts>();
  Tracer each_{{.follows_parent = true, .one_in = 1}, counts_};
  Tracer rare_{{.follows_parent = true, .one_in = std::uint64_t{1} << 50}, counts_};
  Tracer strict_{{.follows_parent = false, .one_in = std::uint64_t{1} << 50}, counts_};
  Ids ids_;

  std::uint64_t count(Spanned result) const {
    return counts_->results[static_cast<std::size_t>(result)].load();
  }
};

TEST_F(Traced, without_a_tracer_nothing_happens) {
  RequestTrace trace;
  trace.begin(Phase::reserve);
  trace.end(Phase::reserve);
  trace.answered(201);
  EXPECT_FALSE(trace.is_recorded());
  EXPECT_EQ(trace.context(), nullptr);
  EXPECT_FALSE(trace.outgoing());
}

TEST_F(Traced, a_request_with_a_recorded_parent_continues_its_trace) {
  {
    RequestTrace trace;
    trace.begin(rare_, ids_, parent_text);
    ASSERT_TRUE(trace.is_recorded());
    trace.begin(Phase::reserve);
    trace.end(Phase::reserve);
    trace.begin(Phase::dispatch);
    const auto out = trace.outgoing();
    ASSERT_TRUE(out);
    EXPECT_EQ(to_hex(out->parent.trace.bytes), "4bf92f3577b34da6a3ce929d0e0e4736");
    EXPECT_EQ(out->parent.span, trace.recorded()->spans[1].id);
    EXPECT_TRUE(out->keeps_state);
    trace.end(Phase::dispatch, false, 201);
    EXPECT_EQ(trace.outgoing()->parent.span, trace.context()->span);
    trace.answered(201);
    trace.answered(500);
    EXPECT_EQ(trace.recorded()->status, 201) << "the first answer counts";
  }
  const auto finished = each_.take(10);
  EXPECT_TRUE(finished.empty());
  const auto traces = rare_.take(10);
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0]->span_count, 2U);
  EXPECT_EQ(to_hex(traces[0]->parent->bytes), "00f067aa0ba902b7");
  EXPECT_FALSE(traces[0]->spans[1].has_failed);
}

TEST_F(Traced, an_unrecorded_parent_stays_the_upstreams_parent) {
  {
    RequestTrace trace;
    trace.begin(each_, ids_, unsampled_text);
    EXPECT_FALSE(trace.is_recorded());
    trace.begin(Phase::dispatch);
    EXPECT_EQ(traceparent_of(trace.outgoing()->parent), unsampled_text);
  }
  EXPECT_TRUE(each_.take(10).empty());
}

TEST_F(Traced, by_ratio_no_client_decides_that_it_is_recorded) {
  RequestTrace trace;
  trace.begin(strict_, ids_, parent_text);
  EXPECT_FALSE(trace.is_recorded());
  EXPECT_EQ(traceparent_of(trace.outgoing()->parent), unsampled_text) << "nobody records it";
}

TEST_F(Traced, without_a_readable_parent_a_new_trace_begins) {
  std::set<std::string> seen;
  for (const auto* parent :
       {"", "00-zz", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    RequestTrace trace;
    trace.begin(each_, ids_, parent);
    ASSERT_TRUE(trace.is_recorded());
    EXPECT_FALSE(trace.recorded()->parent);
    EXPECT_FALSE(trace.outgoing()->keeps_state);
    seen.insert(to_hex(trace.context()->trace.bytes));
  }
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_FALSE(seen.contains("4bf92f3577b34da6a3ce929d0e0e4736"));
}

TEST_F(Traced, what_is_open_at_the_end_has_failed) {
  {
    RequestTrace trace;
    trace.begin(each_, ids_, "");
    trace.begin(Phase::reserve);
    RequestTrace moved = std::move(trace);
    EXPECT_FALSE(trace.is_recorded());
  }
  const auto traces = each_.take(10);
  ASSERT_EQ(traces.size(), 1U) << "once, although it was moved";
  EXPECT_TRUE(traces[0]->spans[0].has_failed);
  EXPECT_EQ(traces[0]->status, 0);
}

TEST_F(Traced, spans_beyond_the_room_are_counted) {
  {
    RequestTrace trace;
    trace.begin(each_, ids_, "");
    for (std::size_t i = 0; i < Trace::spans_max + 3; ++i) {
      trace.begin(Phase::settle);
      trace.end(Phase::settle);
    }
  }
  const auto traces = each_.take(10);
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0]->spans_left_out, 3U);
  EXPECT_NE(to_otlp(traces, {"s", "v", "i"}).find(R"("key":"idem.spans_left_out")"),
            std::string::npos);
}

TEST_F(Traced, a_full_queue_drops_the_newest_and_counts_its_spans) {
  for (std::size_t i = 0; i < limits::traces_waiting_max + 2; ++i) {
    auto trace = std::make_unique<Trace>();
    trace->span_count = 4;
    each_.finished(std::move(trace));
  }
  EXPECT_EQ(count(Spanned::queue_full), 10U);
  EXPECT_EQ(each_.take(3).size(), 3U);
  EXPECT_EQ(each_.take(limits::traces_waiting_max).size(), limits::traces_waiting_max - 3);
  EXPECT_TRUE(each_.take(1).empty());
}

TEST_F(Traced, otlp_has_the_encoding_of_its_specification) {
  {
    RequestTrace trace;
    trace.begin(each_, ids_, parent_text);
    auto* const recorded = trace.recorded();
    recorded->method = "POST";
    recorded->route = "a \"quoted\" name\n";
    recorded->operation_ref = "0123";
    recorded->reserved_as = "replay";
    recorded->ran_in = parse_traceparent("00-11111111111111111111111111111111-2222222222222222-01");
    trace.begin(Phase::dispatch);
    trace.end(Phase::dispatch, false, 201);
    trace.answered(503);
  }
  const auto traces = each_.take(10);
  EXPECT_EQ(spans_of(traces), 2U);
  const auto parsed = json::parse(to_otlp(traces, {"payments", "0.1", "node \\ 1"}));
  ASSERT_TRUE(parsed) << to_otlp(traces, {"payments", "0.1", "node \\ 1"});
  const auto& resource = std::get<json::Array>(parsed->find("resourceSpans")->is).at(0);
  const auto& scope = std::get<json::Array>(resource.find("scopeSpans")->is).at(0);
  const auto& spans = std::get<json::Array>(scope.find("spans")->is);
  ASSERT_EQ(spans.size(), 2U);
  const auto text = [](const json::Value& of, std::string_view name) {
    return std::get<std::string>(of.find(name)->is);
  };
  const auto& own = spans[0];
  EXPECT_EQ(text(own, "traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(text(own, "parentSpanId"), "00f067aa0ba902b7");
  EXPECT_EQ(text(own, "name"), "POST a \"quoted\" name\n");
  EXPECT_EQ(std::get<std::int64_t>(own.find("kind")->is), 2);
  EXPECT_EQ(std::get<std::int64_t>(own.find("status")->find("code")->is), 2);
  const auto& link = std::get<json::Array>(own.find("links")->is).at(0);
  EXPECT_EQ(text(link, "traceId"), std::string(32, '1'));
  EXPECT_EQ(text(link, "spanId"), std::string(16, '2'));
  const auto& dispatch = spans[1];
  EXPECT_EQ(text(dispatch, "parentSpanId"), text(own, "spanId"));
  EXPECT_EQ(text(dispatch, "name"), "dispatch");
  EXPECT_EQ(std::get<std::int64_t>(dispatch.find("kind")->is), 3);
  EXPECT_EQ(dispatch.find("status"), nullptr);
  EXPECT_LE(std::stoull(text(own, "startTimeUnixNano")),
            std::stoull(text(dispatch, "startTimeUnixNano")));
  EXPECT_LE(std::stoull(text(dispatch, "endTimeUnixNano")),
            std::stoull(text(own, "endTimeUnixNano")));
}

TEST_F(Traced, a_partial_success_says_how_many_spans_were_refused) {
  EXPECT_EQ(refused_spans(R"({"partialSuccess":{"rejectedSpans":"17","errorMessage":"x"}})"), 17U);
  EXPECT_EQ(refused_spans(R"({"partialSuccess":{"rejectedSpans":3}})"), 3U);
  for (const auto* none : {"", "{}", "no json", R"({"partialSuccess":{}})",
                           R"({"partialSuccess":{"rejectedSpans":"-1"}})",
                           R"({"partialSuccess":{"rejectedSpans":-1}})",
                           R"({"partialSuccess":{"rejectedSpans":"1x"}})"}) {
    EXPECT_EQ(refused_spans(none), 0U) << none;
  }
}

}  // namespace
}  // namespace idem::tracing
