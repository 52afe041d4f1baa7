#include "core/evidence/provider_rules.hpp"

#include "core/json/place.hpp"
#include "core/json/scalars.hpp"

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

bool is_json_text(std::string_view body) { return !body.empty() && check_json(body).has_value(); }

/// "200" or "2xx".
bool parse_status(std::string_view text, int& from, int& to) {
  if (text.size() != 3 || text[0] < '1' || text[0] > '5') return false;
  if (text.substr(1) == "xx") {
    from = (text[0] - '0') * 100;
    to = from + 99;
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + 3, from);
  to = from;
  return error == std::errc{} && end == text.data() + 3;
}

/// RFC 9110 §5.5, and nothing that would need trimming.
bool is_field_value(std::string_view text) {
  const bool is_clean = std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f;
  });
  return is_clean && !text.starts_with(' ') && !text.ends_with(' ');
}

}  // namespace

std::string_view name_of(Finding finding) noexcept {
  switch (finding) {
    case Finding::found:
      return "found";
    case Finding::failed:
      return "failed";
    case Finding::not_there:
      return "not_there";
    case Finding::later:
      return "later";
  }
  return "";
}

bool contradicts(Finding finding, const Resolve::Reply& reply, const std::optional<Record>& record,
                 std::optional<Fence> fence) noexcept {
  if (!is_positive(finding)) return false;
  if (reply.verdict == Resolve::Verdict::wrong_fence) return true;
  if (reply.verdict != Resolve::Verdict::wrong_state || !record) return false;
  if (record->state == State::in_progress) return record->fence() != fence;
  const bool is_answered = record->state == State::completed && record->response;
  return is_answered && (record->fence() != fence || !agrees(finding, record->response->status));
}

std::expected<ResponseMatcher, std::string> ResponseMatcher::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return std::unexpected("\"" + std::string(text) + "\" is no rule: " + std::string(why) +
                           "; write one such as 404, 2xx, 200 /status=captured, 200 /data/0 or "
                           "200 !/data/0");
  };
  ResponseMatcher rule;
  std::string_view rest = text;
  if (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    const auto end = std::min(rest.find(' '), rest.size());
    if (!parse_status(rest.substr(0, end), rule.status_from_, rule.status_to_)) {
      return wrong("no such status");
    }
    rest.remove_prefix(end);
    if (rest.empty()) return rule;
    rest.remove_prefix(1);
  }
  if (rest.empty()) return wrong("it is empty");
  rule.asks_ = Asks::presence;
  if (rest.starts_with('!')) {
    rule.asks_ = Asks::absence;
    rest.remove_prefix(1);
  }
  const auto equals = rest.find('=');
  if (equals != rest.npos) {
    if (rule.asks_ == Asks::absence) return wrong("an absent value cannot equal anything");
    rule.asks_ = Asks::value;
    rule.value_ = rest.substr(equals + 1);
    rest = rest.substr(0, equals);
  }
  if (!rest.starts_with('/') || !is_json_pointer(rest)) return wrong("no JSON Pointer (RFC 6901)");
  rule.pointer_ = rest;
  return rule;
}

bool ResponseMatcher::matches(int status, std::string_view body, bool is_json) const {
  if (status_from_ != 0 && (status < status_from_ || status > status_to_)) return false;
  if (asks_ == Asks::nothing) return true;
  if (!is_json) return false;
  const auto value = json_at(body, pointer_);
  // An absent value proves something only if its list or object is there.
  const auto has_container = [&] {
    const auto parent = json_at(body, pointer_.substr(0, pointer_.rfind('/')));
    return parent && !parent->empty() && (parent->front() == '[' || parent->front() == '{');
  };
  switch (asks_) {
    case Asks::nothing:
    case Asks::presence:
      return value.has_value();
    case Asks::absence:
      return !value.has_value() && has_container();
    case Asks::value:
      return value && json_plain(*value) == value_;
  }
  return false;
}

Finding judge(const ResponseMatchers& rules, int status, std::string_view body) {
  const bool json = is_json_text(body);
  const auto says = [&](const std::vector<ResponseMatcher>& any) {
    return std::ranges::any_of(
        any, [&](const ResponseMatcher& rule) { return rule.matches(status, body, json); });
  };
  const bool found = says(rules.found);
  const bool failed = says(rules.failed);
  const bool not_there = says(rules.not_there);
  if (int{found} + int{failed} + int{not_there} != 1) return Finding::later;
  if (found) return Finding::found;
  return failed ? Finding::failed : Finding::not_there;
}

std::optional<StoredResponse> rebuild(const RebuildRule& rule, Finding finding,
                                      std::string_view body) {
  const bool json = is_json_text(body);
  StoredResponse response;
  response.status = finding == Finding::found ? rule.found_status : rule.failed_status;
  if (rule.body.empty()) {
    response.body = body;
  } else {
    const auto part = json ? json_at(body, rule.body) : std::nullopt;
    if (!part) return std::nullopt;
    response.body = *part;
  }
  if (!response.body.empty()) response.headers.push_back({"Content-Type", rule.content_type});
  const auto value_at = [&](std::string_view pointer) -> std::optional<std::string> {
    const auto value = json ? json_at(body, pointer) : std::nullopt;
    if (!value) return std::nullopt;
    return json_plain(*value);
  };
  for (const Field& header : rule.headers) {
    const auto value = expand(header.value, value_at);
    if (!value || !is_field_value(*value)) return std::nullopt;
    response.headers.push_back({header.name, *value});
  }
  return response;
}

std::vector<std::string> placeholders(std::string_view text) {
  std::vector<std::string> names;
  const auto note = [&](std::string_view name) -> std::optional<std::string> {
    names.emplace_back(name);
    return std::string();
  };
  if (!expand(text, note)) names.emplace_back();
  return names;
}

}  // namespace idem
