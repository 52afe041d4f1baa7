#include "inbox.hpp"

#include <fmt/format.h>

#include "json_text.hpp"
#include "standard_webhook.hpp"

namespace provider {

Reply Inbox::receive(const Request& request, std::time_t now) {
  const WebhookHead head{.id = field(request, "webhook-id"),
                         .timestamp = field(request, "webhook-timestamp"),
                         .signatures = field(request, "webhook-signature")};
  if (head.id.empty()) {
    ++rejected_;
    return json_reply(400, R"({"error":"no webhook-id"})");
  }
  if (secret && !webhook_is_genuine(*secret, head, request.body(), now)) {
    ++rejected_;
    return json_reply(401, R"({"error":"bad signature"})");
  }
  ++arrivals_;
  auto arrived = read(request);
  const auto [at, first] = messages_.try_emplace(head.id, arrived);
  auto& known = at->second;
  ++known.arrivals;
  if (first) {
    subjects_[known.subject].push_back(head.id);
  } else if (known.body_digest != arrived.body_digest || known.body_bytes != arrived.body_bytes) {
    ++known.conflicts;
    ++conflicts_;
    return json_reply(409, R"({"error":"another body under this webhook-id"})");
  }
  return json_reply(200, fmt::format(R"({{"id":{},"first":{}}})", in_quotes(head.id), first));
}

Inbox::Message Inbox::read(const Request& request) {
  Message message{.type = field(request, "ce-type"),
                  .subject = field(request, "ce-subject"),
                  .body_bytes = request.body().size(),
                  .body_digest = digest_of(request.body())};
  if (message.type.empty()) message.type = text_member(request.body(), "type");
  for (const auto& line : request) {
    std::string name(line.name_string());
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (name.starts_with("ce-")) message.fields.emplace_back(std::move(name), line.value());
  }
  return message;
}

std::string Inbox::json() const {
  auto out = fmt::format(R"({{"messages":{},"arrivals":{},"rejected":{},"conflicts":{},"ids":{{)",
                         messages_.size(), arrivals_, rejected_, conflicts_);
  const char* comma = "";
  for (const auto& [id, message] : messages_) {
    out += fmt::format(R"({}{}:{{"arrivals":{},"type":{},"subject":{}}})", comma, in_quotes(id),
                       message.arrivals, in_quotes(message.type), in_quotes(message.subject));
    comma = ",";
  }
  return out + "}}";
}

std::string Inbox::json_of_id(const std::string& id) const {
  const auto at = messages_.find(id);
  const Message message = at == messages_.end() ? Message{} : at->second;
  std::string fields;
  for (const auto& [name, value] : message.fields) {
    fields += fmt::format("{}{}:{}", fields.empty() ? "" : ",", in_quotes(name), in_quotes(value));
  }
  return fmt::format(
      R"({{"arrivals":{},"effects":{},"conflicts":{},"type":{},"subject":{},"body_bytes":{},)"
      R"("body_digest":"{:016x}","fields":{{{}}}}})",
      message.arrivals, at == messages_.end() ? 0 : 1, message.conflicts, in_quotes(message.type),
      in_quotes(message.subject), message.body_bytes, message.body_digest, fields);
}

std::string Inbox::json_of_subject(const std::string& subject) const {
  std::string ids;
  const auto at = subjects_.find(subject);
  if (at != subjects_.end()) {
    for (const auto& id : at->second) ids += (ids.empty() ? "" : ",") + in_quotes(id);
  }
  return fmt::format(R"({{"subject":{},"ids":[{}]}})", in_quotes(subject), ids);
}

void Inbox::clear() {
  messages_.clear();
  subjects_.clear();
  arrivals_ = rejected_ = conflicts_ = 0;
}

}  // namespace provider
