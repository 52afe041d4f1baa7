#include "webhook/fetch.hpp"

#include "connect/connect_within.hpp"
#include "core/bytes/ascii.hpp"

#include <idem/worker_limits.hpp>

#include <curl/curl.h>

#include <algorithm>
#include <mutex>

namespace idem {
namespace {

using Kind = FetchError::Kind;

struct FreeEasy {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
struct FreeUrl {
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
using Url = std::unique_ptr<CURLU, FreeUrl>;

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string out(text);
  curl_free(text);
  return out;
}

std::expected<Url, std::string> parse_url(const std::string& text) {
  Url url(curl_url());
  if (!url) return std::unexpected("no memory for a URL");
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_DISALLOW_USER);
  if (code == CURLUE_USER_NOT_ALLOWED) {
    return std::unexpected("a URL must have no user or password in it");
  }
  const std::string scheme = code == CURLUE_OK ? part_of(url.get(), CURLUPART_SCHEME) : "";
  if (scheme != "http" && scheme != "https") {
    return std::unexpected("a URL begins with http:// or https:// and a host");
  }
  return url;
}

std::string host_of(CURLU* url) {
  const std::string host = lower_case(part_of(url, CURLUPART_HOST));
  return host + ":" + part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

bool is_allowed(CURLU* url, const std::vector<std::string>& hosts) {
  const std::string host = host_of(url);
  const std::string own_port = part_of(url, CURLUPART_SCHEME) == "https" ? ":443" : ":80";
  return std::ranges::any_of(hosts, [&](const std::string& one) {
    const std::string named = lower_case(one);
    return named == host || named + own_port == host;
  });
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    const bool is_common = (c >= '0' && c <= '9') ||
                           (lower_letter(c) >= 'a' && lower_letter(c) <= 'z') || c == '-' ||
                           c == '_';
    return is_common || std::string_view("!#$%&'*+.^`|~").contains(c);
  });
}

bool is_value(std::string_view text) {
  return std::ranges::all_of(text,
                             [](unsigned char c) { return c == '\t' || (c >= ' ' && c != 0x7F); });
}

/// An answer that is being received.
struct Incoming {
  FetchAnswer answer{};
  std::size_t bytes_max = 0;
  std::size_t head_bytes = 0;
  bool too_large = false;
  bool head_is_over = false;
};

std::size_t on_field(char* data, std::size_t size, std::size_t count, void* to) {
  auto& incoming = *static_cast<Incoming*>(to);
  std::string_view line(data, size * count);
  incoming.head_bytes += line.size();
  if (incoming.head_bytes > limits::fetch_head_bytes_max) {
    incoming.too_large = true;
    return 0;
  }
  if (line.starts_with("HTTP/")) {  // Another head: the previous one was interim.
    incoming.answer.headers.clear();
    incoming.head_is_over = false;
    return size * count;
  }
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) incoming.head_is_over = true;
  const auto colon = line.find(':');
  if (incoming.head_is_over || colon == line.npos) return size * count;
  incoming.answer.headers.push_back(
      {std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))});
  return size * count;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* to) {
  auto& incoming = *static_cast<Incoming*>(to);
  if (size * count > incoming.bytes_max - incoming.answer.body.size()) {
    incoming.too_large = true;
    return 0;
  }
  incoming.answer.body.append(data, size * count);
  return size * count;
}

int on_progress(void* is_abandoned, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(is_abandoned)->load() ? 1 : 0;
}

Kind kind_of(CURLcode code, const Incoming& incoming) {
  if (incoming.too_large) return Kind::too_large;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return Kind::connect;
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_ABORTED_BY_CALLBACK:
      return Kind::timeout;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Kind::tls;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return Kind::refused_by_rule;
    default:  // libcurl has a hundred codes, and more with each version.
      return Kind::protocol;
  }
}

std::unexpected<FetchError> refused(std::string why) {
  return std::unexpected(FetchError{Kind::refused_by_rule, false, std::move(why)});
}

class Fields {
 public:
  /// False: there is no memory for it.
  bool append(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_.get(), line.c_str());
    if (longer == nullptr) return false;
    (void)list_.release();
    list_.reset(longer);
    return true;
  }
  curl_slist* get() const noexcept { return list_.get(); }

 private:
  std::unique_ptr<curl_slist, FreeList> list_;
};

std::expected<Fields, FetchError> fields_of(const FetchRequest& request) {
  Fields fields;
  bool has_type = false;
  bool good = fields.append("Expect:");  // Without this libcurl sends its own.
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || !is_value(value)) return refused("a header is not valid HTTP");
    has_type |= lower_case(name) == "content-type";
    good &= fields.append(name + (value.empty() ? ";" : ": " + value));
  }
  if (!has_type) good &= fields.append("Content-Type:");
  if (!good) return refused("no memory for a request");
  return fields;
}

/// The connection of a request, made before libcurl is asked: libcurl tries the addresses of one
/// family in turn, and gives a silent one the whole of a short timeout. The race is RFC 8305's.
class Approach {
 public:
  /// CURLE_OK also where libcurl needs no help: the host is an address in digits, or a name that it
  /// converts first.
  CURLcode make(CURLU* url, const FetchRequest& request, MonotonicTime deadline) {
    const std::string host = part_of(url, CURLUPART_HOST);
    const std::string port = part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    if (host.starts_with('[') || !std::ranges::all_of(host, is_ascii)) return CURLE_OK;
    if (numeric_peer(host, port)) return CURLE_OK;
    auto peers = look_up(host, port, deadline, request.is_abandoned);
    if (!peers) return peers.error().is_late ? late(request) : CURLE_COULDNT_RESOLVE_HOST;
    if (peers->size() > 1) {
      auto connected = connect_within(*peers, deadline, request.is_abandoned);
      if (!connected) return connected.error().is_late ? late(request) : CURLE_COULDNT_CONNECT;
      socket_ = std::move(connected->socket);
      peers->front() = connected->peer;
    }
    if (peers->empty()) return CURLE_COULDNT_RESOLVE_HOST;
    // So that libcurl does not look it up once more.
    const std::string line = host + ':' + port + ':' + address_text(peers->front());
    return resolved_.append(line) ? CURLE_OK : CURLE_OUT_OF_MEMORY;
  }

  void apply(CURL* c) {
    curl_easy_setopt(c, CURLOPT_RESOLVE, resolved_.get());
    if (!socket_) return;
    curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, &Approach::hand_over);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, this);
    curl_easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, &Approach::say_connected);
  }

 private:
  static CURLcode late(const FetchRequest& request) {
    const bool is_abandoned = request.is_abandoned != nullptr && request.is_abandoned->load();
    return is_abandoned ? CURLE_ABORTED_BY_CALLBACK : CURLE_OPERATION_TIMEDOUT;
  }
  /// Once: then there is none (CURL_SOCKET_BAD).
  static curl_socket_t hand_over(void* approach, curlsocktype, curl_sockaddr*) {
    return static_cast<Approach*>(approach)->socket_.release();
  }
  static int say_connected(void*, curl_socket_t, curlsocktype) {
    return CURL_SOCKOPT_ALREADY_CONNECTED;
  }

  Fields resolved_;
  OwnedDescriptor socket_;
};

void set_method(CURL* c, const FetchRequest& request) {
  const std::string& method = request.method;
  const bool sends = method == "POST" || method == "PUT" || method == "PATCH";
  if (sends || !request.body.empty()) {
    curl_easy_setopt(c, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  } else if (method == "HEAD") {
    curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
  }
  curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method.c_str());
}

void set_rules(CURL* c, const FetchRequest& request, Millis time) {
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_PROXY, "");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
  // If a reused connection was closed meanwhile, libcurl would send the request once more.
  curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, static_cast<long>(time.count()));
  if (request.is_abandoned != nullptr) {
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, request.is_abandoned);
  }
  if (!request.ca_file.empty()) {
    curl_easy_setopt(c, CURLOPT_CAINFO, request.ca_file.c_str());
    curl_easy_setopt(c, CURLOPT_CAPATH, nullptr);  // No other authority is trusted.
  }
  if (!request.certificate_file.empty()) {
    curl_easy_setopt(c, CURLOPT_SSLCERT, request.certificate_file.c_str());
    curl_easy_setopt(c, CURLOPT_SSLKEY, request.key_file.c_str());
  }
}

}  // namespace

class Fetcher::Handle {
 public:
  Handle() : easy_(curl_easy_init()) {}

  std::expected<FetchAnswer, FetchError> fetch(const FetchRequest& request) {
    if (!easy_) return refused("no memory for a request");
    if (!is_token(request.method)) return refused("a method is a token of HTTP");
    // To libcurl a timeout of 0 means none.
    if (request.timeout <= Millis{0}) return refused("there is no time left for it");
    const MonotonicTime deadline = MonotonicClock::now() + request.timeout;
    auto url = parse_url(request.url);
    if (!url) return refused(url.error());
    if (!is_allowed(url->get(), request.allowed_hosts)) {
      return refused(host_of(url->get()) + " is no host that is allowed");
    }
    auto fields = fields_of(request);
    if (!fields) return std::unexpected(std::move(fields.error()));

    CURL* const c = easy_.get();
    curl_easy_reset(c);
    Incoming incoming{.bytes_max = request.max_bytes};
    Approach approach;
    const CURLcode approached = approach.make(url->get(), request, deadline);
    if (approached != CURLE_OK) return outcome(approached, std::move(incoming));
    const Millis left = deadline - MonotonicClock::now();
    if (left <= Millis{0}) return outcome(CURLE_OPERATION_TIMEDOUT, std::move(incoming));
    set_rules(c, request, left);
    set_method(c, request);
    approach.apply(c);
    curl_easy_setopt(c, CURLOPT_CURLU, url->get());
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, fields->get());
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_field);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, &incoming);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &incoming);
    const CURLcode code = curl_easy_perform(c);
    return outcome(code, std::move(incoming));
  }

 private:
  std::expected<FetchAnswer, FetchError> outcome(CURLcode code, Incoming incoming) const {
    long status = 0;
    long sent = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy_.get(), CURLINFO_REQUEST_SIZE, &sent);
    // The whole head of a final answer.
    if (status >= 200 && incoming.head_is_over) incoming.answer.status = static_cast<int>(status);
    if (code == CURLE_OK && incoming.answer.status != 0) return std::move(incoming.answer);
    const Kind kind = kind_of(code, incoming);
    incoming.answer.body.clear();
    std::string why =
        kind == Kind::too_large ? "the answer is too large" : std::string(curl_easy_strerror(code));
    if (code == CURLE_OK) why = "no final answer came";
    return std::unexpected(FetchError{kind, sent > 0, std::move(why), std::move(incoming.answer)});
  }

  Easy easy_;
};

Fetcher::Fetcher() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  handle_ = std::make_unique<Handle>();
}
Fetcher::~Fetcher() = default;
Fetcher::Fetcher(Fetcher&&) noexcept = default;
Fetcher& Fetcher::operator=(Fetcher&&) noexcept = default;

std::expected<FetchAnswer, FetchError> Fetcher::fetch(const FetchRequest& request) {
  return handle_->fetch(request);
}

std::expected<std::string, std::string> fetch_host_of(const std::string& url) {
  const auto parsed = parse_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  return host_of(parsed->get());
}

std::string_view FetchAnswer::header(std::string_view name) const noexcept {
  const auto same = [&](const Field& field) {
    return std::ranges::equal(field.name, name, {}, lower_letter, lower_letter);
  };
  const auto found = std::ranges::find_if(headers, same);
  return found != headers.end() ? std::string_view(found->value) : std::string_view();
}

}  // namespace idem
