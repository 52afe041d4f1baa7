#include "admin/jobs/job_lines.hpp"

#include "core/bytes/base64.hpp"
#include "core/bytes/hex.hpp"
#include "json/value.hpp"
#include "json/writer.hpp"

namespace idem::admin {
namespace {

using json::Value;
using json::Writer;

// ---- writing ----

Writer line_of(std::string_view kind) {
  Writer out;
  out.begin_object();
  out.member("line", kind);
  return out;
}

std::string end_of(Writer& out) {
  out.end_object();
  return out.take();
}

void write_response(Writer& out, const StoredResponse& response) {
  out.name("response");
  out.begin_object();
  out.member("status", response.status);
  out.name("headers");
  out.begin_array();
  for (const Field& field : response.headers) {
    out.begin_array();
    out.text(field.name);
    out.text(field.value);
    out.end_array();
  }
  out.end_array();
  out.member("body_b64", to_base64(response.body));
  out.end_object();
}

void write_order(Writer& out, const JobOrder& order) {
  out.member("what", name_of(order.what));
  out.name("match");
  out.begin_object();
  for (const auto& [name, value] : order.match) out.member(name, value);
  out.end_object();
  out.flag("completes", order.as == Resolve::As::completed);
  out.member("evidence", order.evidence);
  out.flag("nothing_there", order.nothing_there);
  out.member("reason", order.reason);
  out.member("rate", order.rate);
  if (order.response) write_response(out, *order.response);
}

// ---- reading ----

const std::string* text(const Value& object, std::string_view name) {
  const Value* const member = object.find(name);
  return member == nullptr ? nullptr : std::get_if<std::string>(&member->is);
}

std::optional<std::uint64_t> whole(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* const number = std::get_if<std::uint64_t>(&value->is)) return *number;
  const auto* const number = std::get_if<std::int64_t>(&value->is);
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::optional<bool> flag(const Value& object, std::string_view name) {
  const Value* const member = object.find(name);
  const auto* const is = member == nullptr ? nullptr : std::get_if<bool>(&member->is);
  return is == nullptr ? std::nullopt : std::optional(*is);
}

const json::Array* items(const Value& object, std::string_view name) {
  const Value* const member = object.find(name);
  return member == nullptr ? nullptr : std::get_if<json::Array>(&member->is);
}

std::optional<StoredResponse> read_line_response(const Value& value) {
  const auto status = whole(value.find("status"));
  const auto* const headers = items(value, "headers");
  const auto* const body = text(value, "body_b64");
  auto bytes = body == nullptr ? std::nullopt : from_base64(*body);
  if (!status || headers == nullptr || !bytes) return std::nullopt;
  StoredResponse response;
  response.status = static_cast<int>(*status);
  response.body = std::move(*bytes);
  for (const Value& one : *headers) {
    const auto* const pair = std::get_if<json::Array>(&one.is);
    if (pair == nullptr || pair->size() != 2) return std::nullopt;
    const auto* const name = std::get_if<std::string>(&pair->front().is);
    const auto* const field = std::get_if<std::string>(&pair->back().is);
    if (name == nullptr || field == nullptr) return std::nullopt;
    response.headers.push_back({*name, *field});
  }
  return response;
}

std::optional<JobOrder> read_order(const Value& line) {
  const auto* const name = text(line, "what");
  const auto what = name == nullptr ? std::nullopt : parse_job_what(*name);
  const Value* const match = line.find("match");
  const auto* const filters = match == nullptr ? nullptr : std::get_if<json::Object>(&match->is);
  const auto completes = flag(line, "completes");
  const auto* const evidence = text(line, "evidence");
  const auto nothing_there = flag(line, "nothing_there");
  const auto* const reason = text(line, "reason");
  const auto rate = whole(line.find("rate"));
  const bool is_whole = what && filters != nullptr && completes && evidence != nullptr &&
                        nothing_there && reason != nullptr && rate && *rate > 0;
  if (!is_whole) return std::nullopt;
  JobOrder order;
  order.what = *what;
  for (const auto& [filter, value] : *filters) {
    const auto* const given = std::get_if<std::string>(&value.is);
    if (given == nullptr) return std::nullopt;
    order.match.emplace_back(filter, *given);
  }
  order.as = *completes ? Resolve::As::completed : Resolve::As::failed_retryable;
  order.evidence = *evidence;
  order.nothing_there = *nothing_there;
  order.reason = *reason;
  order.rate = static_cast<unsigned>(*rate);
  if (const Value* const response = line.find("response")) {
    order.response = read_line_response(*response);
    if (!order.response) return std::nullopt;
  }
  return order;
}

std::optional<JobLine> read_definition(const Value& line) {
  const auto* const id = text(line, "id");
  const auto* const who = text(line, "who");
  const auto* const role = text(line, "role");
  const auto* const login = text(line, "login");
  const auto* const peer = text(line, "peer");
  auto order = read_order(line);
  const auto count = whole(line.find("count"));
  const auto observed_at = whole(line.find("observed_at_ms"));
  const auto grace = whole(line.find("grace_ms"));
  const bool is_whole = id != nullptr && who != nullptr && role != nullptr && login != nullptr &&
                        peer != nullptr && order && count && observed_at && grace;
  if (!is_whole) return std::nullopt;
  return JobDefinition{*id,
                       {*who, *role, *login, *peer},
                       std::move(*order),
                       *count,
                       StoreTime(Millis(static_cast<Millis::rep>(*observed_at))),
                       Millis(static_cast<Millis::rep>(*grace))};
}

std::optional<JobLine> read_targets(const Value& line) {
  const auto* const all = items(line, "targets");
  if (all == nullptr) return std::nullopt;
  JobTargets read;
  for (const Value& one : *all) {
    const auto* const pair = std::get_if<json::Array>(&one.is);
    if (pair == nullptr || pair->size() != 2) return std::nullopt;
    const auto* const ref = std::get_if<std::string>(&pair->front().is);
    const auto id = ref == nullptr ? std::nullopt : parse_handle(*ref);
    const auto fence = whole(&pair->back());
    if (!id || !fence) return std::nullopt;
    read.targets.push_back({*id, *fence});
  }
  return read;
}

std::optional<JobLine> read_results(const Value& line) {
  const auto* const by = text(line, "by");
  const auto from = whole(line.find("from"));
  const auto* const all = items(line, "results");
  if (by == nullptr || !from || all == nullptr) return std::nullopt;
  JobResults read{*by, *from, {}};
  for (const Value& one : *all) {
    const auto* const given = std::get_if<std::string>(&one.is);
    const auto colon = given == nullptr ? std::string::npos : given->find(':');
    if (colon == std::string::npos) return std::nullopt;
    const std::string_view result(*given);
    const auto known = known_result(result.substr(0, colon), result.substr(colon + 1));
    if (!known) return std::nullopt;
    read.results.push_back(*known);
  }
  return read;
}

std::optional<JobLine> read_end(const Value& line) {
  const auto* const by = text(line, "by");
  const auto done = whole(line.find("done"));
  const auto refused = whole(line.find("refused"));
  const auto is_cancelled = flag(line, "cancelled");
  if (by == nullptr || !done || !refused || !is_cancelled) return std::nullopt;
  return JobEnd{*by, *done, *refused, *is_cancelled};
}

}  // namespace

std::string write_line(const JobDefinition& line) {
  Writer out = line_of("job");
  out.member("id", line.id);
  out.member("who", line.by.who);
  out.member("role", line.by.role);
  out.member("login", line.by.login);
  out.member("peer", line.by.peer);
  write_order(out, line.order);
  out.member("count", line.count);
  out.member("observed_at_ms", line.observed_at.time_since_epoch().count());
  out.member("grace_ms", line.grace.count());
  return end_of(out);
}

std::string write_line(std::span<const JobTarget> targets) {
  Writer out = line_of("targets");
  out.name("targets");
  out.begin_array();
  for (const JobTarget& one : targets) {
    out.begin_array();
    out.text(to_hex(one.id.bytes));
    out.number(one.fence);
    out.end_array();
  }
  out.end_array();
  return end_of(out);
}

std::string write_line(const JobBegin& /*line*/) {
  Writer out = line_of("begin");
  return end_of(out);
}

std::string write_line(const JobClaim& line) {
  Writer out = line_of("claim");
  out.member("by", line.by);
  return end_of(out);
}

std::string write_line(const JobResults& line) {
  Writer out = line_of("results");
  out.member("by", line.by);
  out.member("from", line.from);
  out.name("results");
  out.begin_array();
  for (const JobResult& one : line.results) {
    out.text(std::string(one.verdict) + ':' + std::string(one.state));
  }
  out.end_array();
  return end_of(out);
}

std::string write_line(const JobCancel& line) {
  Writer out = line_of("cancel");
  out.member("who", line.who);
  out.member("reason", line.reason);
  return end_of(out);
}

std::string write_line(const JobEnd& line) {
  Writer out = line_of("end");
  out.member("by", line.by);
  out.member("done", line.done);
  out.member("refused", line.refused);
  out.flag("cancelled", line.is_cancelled);
  return end_of(out);
}

std::optional<JobLine> parse_job_line(std::string_view bytes) {
  const auto line = json::parse(bytes);
  const auto* const kind = line ? text(*line, "line") : nullptr;
  if (kind == nullptr) return std::nullopt;
  if (*kind == "job") return read_definition(*line);
  if (*kind == "targets") return read_targets(*line);
  if (*kind == "begin") return JobBegin{};
  if (*kind == "results") return read_results(*line);
  if (*kind == "end") return read_end(*line);
  if (*kind == "claim") {
    const auto* const by = text(*line, "by");
    return by == nullptr ? std::nullopt : std::optional<JobLine>(JobClaim{*by});
  }
  if (*kind == "cancel") {
    const auto* const who = text(*line, "who");
    const auto* const reason = text(*line, "reason");
    if (who == nullptr || reason == nullptr) return std::nullopt;
    return JobCancel{*who, *reason};
  }
  return std::nullopt;
}

}  // namespace idem::admin
