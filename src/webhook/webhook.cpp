#include "core/bytes/percent.hpp"
#include "core/bytes/rfc3339.hpp"
#include "webhook/fetch.hpp"

#include <idem/webhook.hpp>

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace idem::inline v0_1 {
namespace {

/// Of an answer's body, which is not used; the connection to a receiver that sends more is closed.
constexpr std::size_t answer_bytes_max = 64UL * 1024;

/// RFC 9110 §10.2.3, in either form; 0: neither.
Millis retry_after(const std::string& text) {
  long seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error == std::errc{} && stop == end && seconds >= 0) {
    return std::chrono::seconds(std::min(seconds, 1'000'000L));
  }
  const std::time_t then = curl_getdate(text.c_str(), nullptr);
  if (then < 0) return {};
  const auto in = std::chrono::system_clock::from_time_t(then) - std::chrono::system_clock::now();
  return std::max(std::chrono::duration_cast<Millis>(in), Millis{0});
}

CallEnd answered(const FetchAnswer& head) {
  const int status = head.status;
  const std::string why = "it answered " + std::to_string(status);
  if (status >= 200 && status < 300) {
    const auto reference = head.header("Idem-Reference");
    return CallAnswered{std::to_string(status),
                        std::string(reference.empty() ? head.header("Location") : reference)};
  }
  const Millis retry_in = retry_after(std::string(head.header("Retry-After")));
  // These are about another request that is under way, or about one that was not read to its end.
  const bool says_nothing = status == 408 || status == 409 || status == 425;
  if (status < 400 || status >= 500 || says_nothing) return CallAmbiguous{why, {}, retry_in};
  return CallNotDone{why, retry_in, status == 410};
}

/// CloudEvents 1.0, HTTP protocol binding §3.1.3.2: encodes all but visible ASCII, and the
/// characters of escapes and quotations.
std::string encoded(std::string_view text) {
  return percent_encoded(text, [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '%'; });
}

/// Values come from a message: no byte of them may end the line.
Field field(std::string_view name, std::string_view value) {
  std::string text;
  for (const char c : value) text += c >= ' ' && c <= '~' ? c : '?';
  return {std::string(name), std::move(text)};
}

class Webhook {
 public:
  Webhook(WebhookOptions options, std::string host)
      : options_(std::move(options)), host_(std::move(host)) {}

  CallEnd operator()(const Delivery& delivery) const;

 private:
  std::expected<std::vector<Field>, std::string> fields_of(const Delivery& delivery) const;

  WebhookOptions options_;
  std::string host_;
};

std::expected<std::vector<Field>, std::string> Webhook::fields_of(const Delivery& delivery) const {
  const Message& message = delivery.message;
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  std::vector<Field> fields;
  fields.push_back(field("Content-Type", message.content_type));
  fields.push_back(field("webhook-id", delivery.id));
  fields.push_back(field("webhook-timestamp", std::to_string(now)));
  if (!options_.secrets.empty()) {
    const auto signature = webhook_signature(options_.secrets, delivery.id, now, message.payload);
    if (!signature) return std::unexpected(signature.error());
    fields.push_back(field("webhook-signature", *signature));
  }
  fields.push_back(field("ce-specversion", "1.0"));
  fields.push_back(field("ce-id", delivery.id));
  fields.push_back(field("ce-source", encoded(options_.source)));
  fields.push_back(field("ce-type", encoded(message.type)));
  fields.push_back(field("ce-time", to_rfc3339(delivery.created_at)));
  if (!message.aggregate_id.empty()) {
    const auto subject = encoded(message.aggregate_type + "/" + message.aggregate_id);
    fields.push_back(field("ce-subject", subject));
  }
  fields.push_back(field("Idempotency-Key", delivery.key));
  fields.push_back(field("User-Agent", "Idem"));
  return fields;
}

CallEnd Webhook::operator()(const Delivery& delivery) const {
  auto fields = fields_of(delivery);
  if (!fields) return CallNotDone{std::move(fields.error()), {}};
  const FetchRequest request{.method = "POST",
                             .url = options_.url,
                             .headers = std::move(*fields),
                             .body = delivery.message.payload,
                             .timeout = delivery.timeout,
                             .max_bytes = answer_bytes_max,
                             .allowed_hosts = {host_},
                             .ca_file = options_.ca_file};
  const auto answer = Fetcher().fetch(request);
  if (answer) return answered(*answer);
  const FetchError& error = answer.error();
  // A whole head says how it ended; the body is not needed.
  if (error.kind == FetchError::Kind::too_large && error.head.status != 0) {
    return answered(error.head);
  }
  if (!error.sent) return CallNotDone{error.why, {}};
  return CallAmbiguous{error.why, {}, {}};
}

}  // namespace

std::expected<std::function<CallEnd(const Delivery&)>, std::string> webhook(
    const WebhookOptions& options) {
  if (!options.url.starts_with("http://") && !options.url.starts_with("https://")) {
    return std::unexpected("a webhook's url begins with http:// or https://");
  }
  if (auto tried = webhook_signature(options.secrets, "id", 0, ""); !tried) {
    return std::unexpected(std::move(tried.error()));
  }
  auto host = fetch_host_of(options.url);
  if (!host) return std::unexpected(std::move(host.error()));
  return Webhook(options, std::move(*host));
}

}  // namespace idem::inline v0_1
