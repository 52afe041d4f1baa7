#include "gateway/policy_document.hpp"

#include "core/answers.hpp"

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

void add_route(JsonText& json, const Route& route) {
  json.open('{');
  if (!route.name.empty()) json.member("operation", route.name);
  if (!route.methods.empty()) add_list(json, "methods", route.methods);
  json.member("path", route.path.text());
  json.member("key_required", route.ever_needs_key());
  json.member("mode", name_of(route.mode));
  if (route.respond_async) json.member("respond_async", true);
  if (route.wait_max >= Millis(1000)) json.member("wait_max_seconds", seconds(route.wait_max));
  json.member("key_reused_status",
              static_cast<std::int64_t>(misuse_answer({}, route.answers.preset).status));
  json.member("retention_seconds", seconds(route.retention));
  // From then on the same key runs anew instead of being refused.
  json.member("refused_after_retention_seconds", seconds(route.tombstone));
  json.member("request_body_bytes_max", static_cast<std::int64_t>(route.request_body_bytes_max));
  json.close('}');
}

}  // namespace

Answer policy_document(const GatewaySettings& settings) {
  JsonText json;
  json.open('{');
  add_list(json, "key_headers", settings.key_headers);
  json.member("key_syntax", name_of(settings.key.syntax));
  json.member("key_bytes_min", static_cast<std::int64_t>(settings.key.bytes_min));
  json.member("key_bytes_max", static_cast<std::int64_t>(limits::key_bytes_max));
  json.member("key_reject_pii", settings.key.reject_pii);
  // The first that matches a request is the one that counts.
  json.name("routes");
  json.open('[');
  for (const auto& route : settings.routes.all()) add_route(json, route);
  json.close(']');
  json.member("problems", "/.idem/problems/{code}");
  json.close('}');
  Answer answer{200, {}, json.take() + "\n"};
  answer.headers.push_back({"Content-Type", "application/json"});
  answer.headers.push_back({"Cache-Control", "public, max-age=60"});
  return answer;
}

}  // namespace idem::gateway
