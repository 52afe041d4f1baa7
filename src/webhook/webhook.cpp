#include "core/rfc3339.hpp"

#include <idem/webhook.hpp>

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <mutex>

namespace idem {
namespace {

/// Of an answer's body, which nobody reads; a receiver that sends more is cut off.
constexpr std::size_t answer_bytes_max = 64UL * 1024;

struct FreeEasy {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;

/// What is looked at of an answer.
struct Heard {
  std::string idem_reference{};
  std::string location{};
  std::string retry_after{};
  std::size_t body_bytes = 0;
};

bool is_field(std::string_view line, std::string_view name, std::string& into) {
  if (line.size() <= name.size() || line[name.size()] != ':') return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if ((line[i] | 0x20) != name[i]) return false;
  }
  line.remove_prefix(name.size() + 1);
  const auto from = line.find_first_not_of(" \t");
  const auto to = line.find_last_not_of(" \t\r\n");
  if (from != line.npos && to >= from) into = line.substr(from, to - from + 1);
  return true;
}

std::size_t on_field(char* data, std::size_t size, std::size_t count, void* to) {
  const std::string_view line(data, size * count);
  auto& heard = *static_cast<Heard*>(to);
  (void)(is_field(line, "idem-reference", heard.idem_reference) ||
         is_field(line, "location", heard.location) ||
         is_field(line, "retry-after", heard.retry_after));
  return size * count;
}

std::size_t on_body(char*, std::size_t size, std::size_t count, void* to) {
  auto& heard = *static_cast<Heard*>(to);
  heard.body_bytes += size * count;
  return heard.body_bytes > answer_bytes_max ? 0 : size * count;
}

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

CallEnd answered(long status, const Heard& heard) {
  const std::string why = "it answered " + std::to_string(status);
  if (status >= 200 && status < 300) {
    const auto& reference = heard.idem_reference.empty() ? heard.location : heard.idem_reference;
    return CallAnswered{std::to_string(status), reference};
  }
  const Millis retry_in = retry_after(heard.retry_after);
  // They speak of another request that is under way, or of none that was read to its end.
  const bool says_nothing = status == 408 || status == 409 || status == 425;
  if (status < 400 || status >= 500 || says_nothing) return CallAmbiguous{why, {}, retry_in};
  return CallNotDone{why, retry_in, status == 410};
}

/// CloudEvents 1.0, HTTP protocol binding §3.1.3.2: what is no visible ASCII, and what would be
/// taken for an escape or a quotation.
std::string encoded(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (c > ' ' && c <= '~' && c != '"' && c != '%') {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

class Fields {
 public:
  /// Values come from a message: nothing of them may end the line.
  void add(std::string_view name, std::string_view value) {
    std::string line(name);
    line += value.empty() ? ";" : ": ";
    for (const char c : value) line += c >= ' ' && c <= '~' ? c : '?';
    append(line);
  }
  /// One that libcurl would send by itself.
  void leave_out(const char* name) { append(std::string(name) + ":"); }
  curl_slist* get() const noexcept { return list_.get(); }

 private:
  void append(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_.get(), line.c_str());
    if (longer == nullptr) return;
    (void)list_.release();
    list_.reset(longer);
  }

  std::unique_ptr<curl_slist, FreeList> list_;
};

class Webhook {
 public:
  explicit Webhook(WebhookOptions options) : options_(std::move(options)) {}

  CallEnd operator()(const Delivery& delivery) const;

 private:
  Fields fields_of(const Delivery& delivery) const;

  WebhookOptions options_;
};

Fields Webhook::fields_of(const Delivery& delivery) const {
  const Message& message = delivery.message;
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  Fields fields;
  fields.add("Content-Type", message.content_type);
  fields.add("webhook-id", delivery.id);
  fields.add("webhook-timestamp", std::to_string(now));
  if (!options_.secrets.empty()) {
    // Checked when this was made.
    fields.add("webhook-signature",
               webhook_signature(options_.secrets, delivery.id, now, message.payload).value_or(""));
  }
  fields.add("ce-specversion", "1.0");
  fields.add("ce-id", delivery.id);
  fields.add("ce-source", encoded(options_.source));
  fields.add("ce-type", encoded(message.type));
  fields.add("ce-time", to_rfc3339(delivery.created_at));
  if (!message.aggregate_id.empty()) {
    fields.add("ce-subject", encoded(message.aggregate_type + "/" + message.aggregate_id));
  }
  fields.add("Idempotency-Key", delivery.key);
  fields.add("User-Agent", "Idem");
  fields.leave_out("Expect");
  return fields;
}

CallEnd Webhook::operator()(const Delivery& delivery) const {
  const Easy easy(curl_easy_init());
  if (!easy) return CallNotDone{"no memory for a request", {}};
  CURL* const c = easy.get();
  const Fields fields = fields_of(delivery);
  Heard heard;
  curl_easy_setopt(c, CURLOPT_URL, options_.url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_PROXY, "");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
  // On a connection that was used before, a request that met its end would be sent once more.
  curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, static_cast<long>(delivery.timeout.count()));
  curl_easy_setopt(c, CURLOPT_POST, 1L);
  curl_easy_setopt(c, CURLOPT_POSTFIELDS, delivery.message.payload.data());
  curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(delivery.message.payload.size()));
  curl_easy_setopt(c, CURLOPT_HTTPHEADER, fields.get());
  curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_field);
  curl_easy_setopt(c, CURLOPT_HEADERDATA, &heard);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &heard);
  if (!options_.ca_file.empty()) curl_easy_setopt(c, CURLOPT_CAINFO, options_.ca_file.c_str());

  const CURLcode code = curl_easy_perform(c);
  long status = 0;
  long sent = 0;
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(c, CURLINFO_REQUEST_SIZE, &sent);
  // A head that was read whole says how it ended, whatever became of a body that nobody needs.
  if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && status >= 200)) {
    return answered(status, heard);
  }
  const std::string why = curl_easy_strerror(code);
  if (sent == 0) return CallNotDone{why, {}};
  return CallAmbiguous{why, {}, {}};
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
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  return Webhook(options);
}

}  // namespace idem
