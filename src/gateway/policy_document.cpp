#include "gateway/policy_document.hpp"

#include "core/bytes/json_string.hpp"
#include "core/exchange/answers.hpp"
#include "core/exchange/error_form.hpp"
#include "gateway/answer_meanings.hpp"
#include "gateway/keyed/key_age.hpp"

namespace idem::gateway {
namespace {

std::string_view name_of(Mode mode) noexcept {
  switch (mode) {
    case Mode::conflict:
      return "conflict";
    case Mode::wait:
      return "wait";
    case Mode::async:
      return "async";
  }
  return "conflict";
}

std::string_view name_of(KeySyntax syntax) noexcept {
  switch (syntax) {
    case KeySyntax::any:
      return "any";
    case KeySyntax::structured:
      return "structured";
    case KeySyntax::bare:
      return "bare";
  }
  return "any";
}

std::string_view name_of(KeyTimeRule rule) noexcept {
  switch (rule) {
    case KeyTimeRule::ignored:
      return "ignored";
    case KeyTimeRule::checked:
      return "checked";
    case KeyTimeRule::required:
      return "required";
  }
  return "ignored";
}

/// Members and elements in the order in which they are added.
class JsonText {
 public:
  void open(char bracket) {
    comma();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void name(std::string_view member) {
    comma();
    append_json_string(text_, member);
    text_ += ':';
    first_ = true;
  }
  void text(std::string_view value) {
    comma();
    append_json_string(text_, value);
  }
  void member(std::string_view member, std::string_view value) {
    name(member);
    text(value);
  }
  void member(std::string_view member, const char* value) {
    this->member(member, std::string_view(value));
  }
  void member(std::string_view member, bool value) {
    name(member);
    comma();
    text_ += value ? "true" : "false";
  }
  void member(std::string_view member, std::int64_t value) {
    name(member);
    comma();
    text_ += std::to_string(value);
  }
  std::string take() { return std::move(text_); }

 private:
  void comma() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  std::string text_;
  bool first_ = true;
};

std::int64_t seconds(Millis time) { return time / Millis(1000); }

void add_list(JsonText& json, std::string_view name, const std::vector<std::string>& values) {
  json.name(name);
  json.open('[');
  for (const auto& value : values) json.text(value);
  json.close(']');
}

/// Of all final statuses those that mean this, as "201" or "200-399".
std::vector<std::string> statuses_meaning(std::string_view outcome, const AnswerPolicy& policy,
                                          bool retry_after) {
  std::vector<std::string> ranges;
  int begin = 0;
  int last = 0;  // Of the range that is open.
  for (const AnswerMeaning& one : meanings_of(policy, retry_after)) {
    if (one.outcome != outcome) continue;
    // What decides is no business of clients.
    const bool continues = !ranges.empty() && one.first == last + 1;
    if (!continues) begin = one.first;
    last = one.last;
    auto range = std::to_string(begin) + (last > begin ? '-' + std::to_string(last) : "");
    if (continues) {
      ranges.back() = std::move(range);
    } else {
      ranges.push_back(std::move(range));
    }
  }
  return ranges;
}

// The outcome of each complete answer without an `Idem-Outcome`.
void add_outcomes(JsonText& json, std::string_view name, const AnswerPolicy& policy,
                  bool retry_after) {
  json.name(name);
  json.open('{');
  for (const std::string_view outcome : {"stored", "released", "unknown"}) {
    add_list(json, outcome, statuses_meaning(outcome, policy, retry_after));
  }
  json.close('}');
}

void add_route(JsonText& json, const Route& route, bool asks_age) {
  json.open('{');
  if (!route.name.empty()) json.member("operation", route.name);
  if (!route.methods.empty()) add_list(json, "methods", route.methods);
  json.member("path", route.path.text());
  if (route.in_shadow()) {  // Nothing that a client could rely on.
    json.member("enforce", "shadow");
    json.member("key_required", false);
    json.close('}');
    return;
  }
  json.member("key_required", route.ever_needs_key());
  if (route.allow_method_override) json.member("method_override", true);
  json.member("mode", name_of(route.mode));
  if (route.respond_async) json.member("respond_async", true);
  if (route.wait_max >= Millis(1000)) json.member("wait_max_seconds", seconds(route.wait_max));
  json.member("key_reused_status",
              static_cast<std::int64_t>(misuse_answer({}, {}, route.answers.preset).status));
  if (error_form_of(route.answers.preset) == ErrorForm::stripe) json.member("errors", "stripe");
  json.member("retention_seconds", seconds(route.retention));
  // After that the same key runs anew instead of being refused.
  json.member("refused_after_retention_seconds", seconds(route.tombstone));
  if (asks_age) json.member("new_key_age_max_seconds", seconds(new_key_age_max(route)));
  json.member("request_body_bytes_max", static_cast<std::int64_t>(route.request_body_bytes_max));
  const std::size_t replayed = route.store_body ? route.response_body_bytes_max : 0;
  json.member("replayed_body_bytes_max", static_cast<std::int64_t>(replayed));
  add_outcomes(json, "outcomes", route.answers, false);
  add_outcomes(json, "outcomes_with_retry_after", route.answers, true);
  json.close('}');
}

void add_problem(JsonText& json, const ProblemKind& kind) {
  json.open('{');
  json.member("type", "/.idem/problems/" + std::string(kind.name));
  json.member("code", kind.name);
  json.member("status", static_cast<std::int64_t>(kind.status));
  if (kind.retry != RetryAdvice::none) json.member("retry", idem::name_of(kind.retry));
  json.close('}');
}

}  // namespace

WireAnswer policy_document(const GatewaySettings& settings) {
  JsonText json;
  json.open('{');
  add_list(json, "key_headers", settings.key_headers);
  json.member("key_syntax", name_of(settings.key.syntax));
  json.member("key_bytes_min", static_cast<std::int64_t>(settings.key.bytes_min));
  json.member("key_bytes_max", static_cast<std::int64_t>(limits::key_bytes_max));
  json.member("key_reject_pii", settings.key.reject_pii);
  json.member("key_scope", name_of(settings.key_scope));
  json.member("key_time", name_of(settings.key_time));
  const bool asks_age = settings.key_time != KeyTimeRule::ignored || settings.honours_first_sent;
  if (settings.honours_first_sent) json.member("first_sent_header", first_sent_field);
  if (asks_age) json.member("key_time_skew_seconds", seconds(limits::key_time_skew));
  // The first that matches a request is the one that counts.
  json.name("routes");
  json.open('[');
  for (const auto& route : settings.routes.all()) add_route(json, route, asks_age);
  json.close(']');
  json.member("problems", "/.idem/problems/{code}");
  json.name("problem_types");
  json.open('[');
  for (const auto& kind : all_kinds()) add_problem(json, kind);
  json.close(']');
  json.close('}');
  WireAnswer answer{200, {}, json.take() + "\n"};
  answer.headers.push_back({"Content-Type", "application/json"});
  answer.headers.push_back({"Cache-Control", "public, max-age=60"});
  return answer;
}

}  // namespace idem::gateway
