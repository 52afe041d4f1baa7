#include "admin/job_orders.hpp"

#include "admin/order_reading.hpp"
#include "admin/orders.hpp"
#include "core/bytes/percent.hpp"
#include "core/bytes/rfc3339.hpp"

#include <idem/job_limits.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <array>

namespace idem::admin {
namespace {

Read<JobWhat> read_what(const Value& object) {
  const auto text = read_text(object, "what", limits::reason_bytes_max);
  if (!text) return std::unexpected(text.error());
  const auto what = parse_job_what(*text);
  if (what) return *what;
  return wrong("/what", "must be keys.resolve, keys.release, dlq.redrive or dlq.discard");
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Filters as the lists have them in their queries: strings, and true for a flag.
Read<Pairs> read_filters(const Value& object, std::span<const std::string_view> known) {
  const Value* const match = object.find("match");
  if (match == nullptr) return wrong("/match", "is missing");
  const auto* const members = std::get_if<json::Object>(&match->is);
  if (members == nullptr) return wrong("/match", "must be an object");
  Pairs filters;
  for (const auto& [name, value] : *members) {
    if (std::ranges::find(known, name) == known.end()) {
      std::string names;
      for (const auto one : known) names += (names.empty() ? "" : ", ") + std::string(one);
      return wrong("/match", "has a member that is none of " + names);
    }
    const auto* const text = std::get_if<std::string>(&value.is);
    const auto* const flag = std::get_if<bool>(&value.is);
    if (text == nullptr && (flag == nullptr || !*flag)) {
      return wrong("/match/" + name, "must be a string; leave out what does not matter");
    }
    filters.emplace_back(name, text != nullptr ? *text : "true");
  }
  return filters;
}

/// A moment in place of an age: the filter of a job stays what it was when the job was made.
void fix_moment(Pairs& match, std::string_view name, const std::optional<StoreTime>& moment) {
  for (auto& [filter, value] : match) {
    if (filter == name && moment) value = to_rfc3339(*moment);
  }
}

Read<JobRequest> read_keys_search(const Value& object, JobRequest request, StoreTime now,
                                  const ParseDuration& parse_duration) {
  static constexpr std::array<std::string_view, 6> known{"state",      "scope",      "operation",
                                                         "older_than", "newer_than", "contested"};
  auto match = read_filters(object, known);
  if (!match) return std::unexpected(match.error());
  std::string query;
  for (const auto& [name, value] : *match) {
    query += (query.empty() ? "" : "&") + name + '=' + percent_encoded(value);
  }
  auto keys = parse_keys_query(query, parse_duration);
  if (!keys) return wrong("/match", keys.error());
  if (keys->older_than) keys->list.created_before = now - *keys->older_than;
  if (keys->newer_than) keys->created_from = now - *keys->newer_than;
  fix_moment(*match, "older_than", keys->list.created_before);
  fix_moment(*match, "newer_than", keys->created_from);
  if (request.search.what == JobWhat::release) {
    if (keys->list.state && *keys->list.state != State::completed) {
      return wrong("/match/state", "must be completed: a release drops a stored answer");
    }
    keys->list.state = State::completed;
  } else if (!keys->list.state) {
    return wrong("/match/state", "is missing: say which records evidence settles, such as unknown");
  }
  request.search.keys = std::move(*keys);
  request.order.match = std::move(*match);
  return request;
}

Read<JobRequest> read_messages_search(const Value& object, JobRequest request) {
  static constexpr std::array<std::string_view, 2> known{"destination", "type"};
  auto match = read_filters(object, known);
  if (!match) return std::unexpected(match.error());
  for (const auto& [name, value] : *match) {
    if (value.empty() || value.size() > limits::message_name_bytes_max || value.contains('\0')) {
      return wrong("/match/" + name, "must be a name; leave it out for all");
    }
    (name == "type" ? request.search.type : request.search.destination) = value;
  }
  request.order.match = std::move(*match);
  return request;
}

Read<JobRequest> read_search(const Value& object, StoreTime now,
                             const ParseDuration& parse_duration) {
  const auto what = read_what(object);
  if (!what) return std::unexpected(what.error());
  JobRequest request;
  request.search.what = *what;
  request.order.what = *what;
  if (!is_about_keys(*what)) return read_messages_search(object, std::move(request));
  return read_keys_search(object, std::move(request), now, parse_duration);
}

Read<std::uint64_t> read_whole(const Value& object, std::string_view name, std::uint64_t most) {
  const Value* const value = object.find(name);
  const std::string where = "/" + std::string(name);
  if (value == nullptr) return wrong(where, "is missing");
  const auto* const number = std::get_if<std::int64_t>(&value->is);
  const bool is_good =
      number != nullptr && *number > 0 && static_cast<std::uint64_t>(*number) <= most;
  if (is_good) return static_cast<std::uint64_t>(*number);
  return wrong(where, "must be a whole number from 1 to " + std::to_string(most));
}

Read<bool> has_only(const Value& order, std::initializer_list<std::string_view> known) {
  const auto* const members = std::get_if<json::Object>(&order.is);
  if (members == nullptr) return wrong("/order", "must be an object");
  for (const auto& member : *members) {
    if (std::ranges::find(known, member.name) != known.end()) continue;
    std::string names;
    for (const auto name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    return wrong("/order", "has a member that is none of " + names);
  }
  return true;
}

std::size_t bytes_of(const JobOrder& order) {
  std::size_t bytes = order.evidence.size() + order.reason.size();
  for (const auto& [name, value] : order.match) bytes += name.size() + value.size();
  if (!order.response) return bytes;
  for (const Field& field : order.response->headers)
    bytes += field.name.size() + field.value.size();
  return bytes + order.response->body.size() * 4 / 3;
}

Read<JobOrder> read_job_order(const Value& order, JobOrder made) {
  switch (made.what) {
    case JobWhat::resolve: {
      const auto known = has_only(order, {"as", "evidence", "reason", "response", "observed_at"});
      if (!known) return std::unexpected(known.error());
      auto verb = read_resolve(order);
      if (!verb) return wrong("/order", verb.error());
      if (verb->as == Resolve::As::completed && !verb->response) {
        return wrong("/order/response", "is missing: the answer that callers receive");
      }
      made.as = verb->as;
      made.evidence = std::move(verb->evidence);
      made.reason = std::move(verb->reason);
      made.response = std::move(verb->response);
      break;
    }
    case JobWhat::redrive: {
      const auto known = has_only(order, {"reason", "nothing_there"});
      if (!known) return std::unexpected(known.error());
      if (const Value* const value = order.find("nothing_there")) {
        const auto* const flag = std::get_if<bool>(&value->is);
        if (flag == nullptr) return wrong("/order/nothing_there", "must be true or false");
        made.nothing_there = *flag;
      }
      break;
    }
    case JobWhat::release:
    case JobWhat::discard: {
      const auto known = has_only(order, {"reason"});
      if (!known) return std::unexpected(known.error());
      break;
    }
  }
  auto reason = read_reason(order);
  if (!reason) return wrong("/order", reason.error());
  made.reason = std::move(*reason);
  if (bytes_of(made) > limits::job_order_bytes_max) {
    return wrong("/order", "has more than " + std::to_string(limits::job_order_bytes_max) +
                               " bytes, which the order of a job may have");
  }
  return made;
}

}  // namespace

std::expected<JobRequest, std::string> parse_job_preview(std::string_view body, StoreTime now,
                                                         const ParseDuration& parse_duration) {
  const auto object = read_object(body, {"what", "match"});
  if (!object) return std::unexpected(object.error());
  return read_search(*object, now, parse_duration);
}

std::expected<JobRequest, std::string> parse_job(std::string_view body, StoreTime now,
                                                 const ParseDuration& parse_duration) {
  const auto object = read_object(body, {"what", "match", "order", "expected", "rate", "by"});
  if (!object) return std::unexpected(object.error());
  auto request = read_search(*object, now, parse_duration);
  if (!request) return std::unexpected(request.error());
  const Value* const order = object->find("order");
  if (order == nullptr) return wrong("/order", "is missing");
  auto read = read_job_order(*order, std::move(request->order));
  if (!read) return std::unexpected(read.error());
  request->order = std::move(*read);
  const auto observed_at = read_observed_at(*order);
  if (!observed_at) return wrong("/order", observed_at.error());
  request->observed_at = *observed_at;
  const auto expected = read_whole(*object, "expected", limits::job_records_max);
  if (!expected) return std::unexpected(expected.error());
  request->expected = *expected;
  request->order.rate = limits::job_rate_default;
  if (object->find("rate") != nullptr) {
    const auto rate = read_whole(*object, "rate", limits::job_rate_max);
    if (!rate) return std::unexpected(rate.error());
    request->order.rate = static_cast<unsigned>(*rate);
  }
  return request;
}

std::expected<std::string, std::string> parse_job_reason(std::string_view body) {
  const auto object = read_object(body, {"reason", "by"});
  if (!object) return std::unexpected(object.error());
  return read_reason(*object);
}

}  // namespace idem::admin
