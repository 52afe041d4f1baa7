#include "store/dynamodb/transfers.hpp"

#include "core/bytes/ascii.hpp"
#include "loop/connecting.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"

#include <curl/curl.h>

#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

namespace idem::dynamodb {
namespace {

struct FreeEasy {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
using Fields = std::unique_ptr<curl_slist, FreeList>;

using Done = std::move_only_function<void(HttpResult)>;

/// A request and the answer that is coming.
struct Transfer {
  HttpRequest request;
  Done done;
  HttpAnswer answer{};
  Fields fields{};
  Fields addresses{};
  Easy easy{};
  bool is_too_large = false;
  int sendings = 0;  ///< More than one: libcurl was kept from the second.
};

/// The value in a line of a head if it is of the field `name`.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  if (!equal_names(take_until(line, ':'), name)) return std::nullopt;
  return trimmed(line, " \t\r\n");
}

std::size_t on_field(char* data, std::size_t size, std::size_t count, void* to) {
  auto& answer = static_cast<Transfer*>(to)->answer;
  const std::string_view line(data, size * count);
  if (const auto date = value_of(line, "date")) answer.date = parse_http_date(std::string(*date));
  if (const auto digits = value_of(line, "x-amz-crc32")) {
    std::uint32_t sum = 0;
    const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), sum);
    if (read.ec == std::errc()) answer.crc32 = sum;
  }
  return size * count;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* to) {
  auto& transfer = *static_cast<Transfer*>(to);
  if (size * count > limits::dynamodb_answer_bytes_max - transfer.answer.body.size()) {
    transfer.is_too_large = true;
    return 0;
  }
  transfer.answer.body.append(data, size * count);
  return size * count;
}

/// libcurl repeats a request by itself where a kept connection has died, and does not say so.
/// Whether a call may be sent again is the store's decision.
int on_sending(void* of, char*, char*, int, int) {
  return static_cast<Transfer*>(of)->sendings++ == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

bool was_sent(CURL* easy, CURLcode code) {
  long request_bytes = 0;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request_bytes);
  if (request_bytes > 0) return true;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_OPERATION_TIMEDOUT:
      return false;
    default:  // libcurl has a hundred codes, and more with each version.
      return true;
  }
}

bool prepare(Transfer& transfer, const std::string& ca_file) {
  transfer.easy.reset(curl_easy_init());
  CURL* const easy = transfer.easy.get();
  if (easy == nullptr) return false;
  const HttpRequest& request = transfer.request;
  const auto add = [&](const std::string& line) {
    curl_slist* const longer = curl_slist_append(transfer.fields.get(), line.c_str());
    if (longer == nullptr) return false;
    // The list has the same first element, unless it was empty.
    if (!transfer.fields) transfer.fields.reset(longer);
    return true;
  };
  bool is_good = add("Expect:") && add("Accept:");  // Without these libcurl sends its own.
  for (const std::string& line : request.headers) is_good &= add(line);
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.fields.get());
  if (!request.addresses.empty()) {
    transfer.addresses.reset(curl_slist_append(nullptr, request.addresses.c_str()));
    is_good &= transfer.addresses != nullptr;
    curl_easy_setopt(easy, CURLOPT_RESOLVE, transfer.addresses.get());
  }
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_sending);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, &transfer);
  }
  if (request.signing) {
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, request.signing->scope.c_str());
    curl_easy_setopt(easy, CURLOPT_USERNAME, request.signing->key_id.c_str());
    curl_easy_setopt(easy, CURLOPT_PASSWORD, request.signing->secret.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.patience.count()));
  const Millis connecting = std::min(request.patience, Millis(limits::dynamodb_connect_max));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connecting.count()));
  if (!request.is_trusted_system && !ca_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_field);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  return is_good;
}

bool start_libcurl() {
  static std::once_flag once;
  static bool is_started = false;
  std::call_once(once, [] { is_started = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; });
  return is_started;
}

struct HostAndPort {
  std::string host;
  std::string port;
};

/// Of a URL whose host is a name; none: libcurl needs no help with it.
std::optional<HostAndPort> name_in(const std::string& text) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), &curl_url_cleanup);
  if (!url || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return {};
  const auto part = [&](CURLUPart which) {
    char* found = nullptr;
    if (curl_url_get(url.get(), which, &found, CURLU_DEFAULT_PORT) != CURLUE_OK)
      return std::string();
    std::string copy(found);
    curl_free(found);
    return copy;
  };
  HostAndPort name{part(CURLUPART_HOST), part(CURLUPART_PORT)};
  if (name.host.starts_with('[') || numeric_peer(name.host, name.port)) return {};
  return name;
}

HttpResult failure(bool was_sent, std::string why) {
  return std::unexpected(HttpFailure{was_sent, std::move(why)});
}

}  // namespace

std::optional<StoreTime> parse_http_date(const std::string& text) {
  const std::time_t seconds = curl_getdate(text.c_str(), nullptr);
  if (seconds < 0) return std::nullopt;
  return StoreTime(std::chrono::seconds(seconds));
}

class Transfers::Worker {
 public:
  explicit Worker(std::string ca_file) : ca_file_(std::move(ca_file)) {
    if (start_libcurl()) multi_.reset(curl_multi_init());
    if (!multi_) return;
    curl_multi_setopt(multi_.get(), CURLMOPT_MAX_HOST_CONNECTIONS,
                      static_cast<long>(limits::dynamodb_connections_max));
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS,
                      static_cast<long>(limits::dynamodb_connections_max));
    thread_ = std::jthread([this] { run(); });
  }

  ~Worker() { close(); }

  void start(HttpRequest request, Done done) {
    auto transfer = std::make_unique<Transfer>(std::move(request), std::move(done));
    {
      const std::lock_guard lock(mutex_);
      if (!is_closed_ && multi_) {
        incoming_.push_back(std::move(transfer));
        if (incoming_.size() == 1) curl_multi_wakeup(multi_.get());
        return;
      }
    }
    transfer->done(failure(false, "the store is closed"));
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      if (multi_) curl_multi_wakeup(multi_.get());
    }
    if (thread_.joinable()) thread_.join();
  }

  bool is_closed() {
    const std::lock_guard lock(mutex_);
    return is_closed_;
  }

 private:
  void run() {
    ::pthread_setname_np(::pthread_self(), "idem-curl");
    constexpr int idle_ms = 1'000;
    while (take()) {
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      finish_all();
      curl_multi_poll(multi_.get(), nullptr, 0, idle_ms, nullptr);
    }
    for (auto& [easy, transfer] : running_) {
      curl_multi_remove_handle(multi_.get(), easy);
      transfer->done(failure(was_sent(easy, CURLE_OPERATION_TIMEDOUT), "the store is closed"));
    }
    running_.clear();
  }

  /// Starts what has come. False: closed.
  bool take() {
    bool is_open = true;
    {
      const std::lock_guard lock(mutex_);
      taken_.swap(incoming_);
      is_open = !is_closed_;
    }
    for (auto& transfer : taken_) {
      if (!is_open || !prepare(*transfer, ca_file_)) {
        transfer->done(failure(false, is_open ? "no memory for a request" : "the store is closed"));
        continue;
      }
      transfer->answer.sent = MonotonicClock::now();
      CURL* const easy = transfer->easy.get();
      curl_multi_add_handle(multi_.get(), easy);
      running_.emplace(easy, std::move(transfer));
    }
    taken_.clear();
    return is_open;
  }

  void finish_all() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* const easy = message->easy_handle;
      const CURLcode code = message->data.result;
      auto node = running_.extract(easy);
      const std::unique_ptr<Transfer> transfer = std::move(node.mapped());
      curl_multi_remove_handle(multi_.get(), easy);
      finish(*transfer, code);
    }
  }

  static void finish(Transfer& transfer, CURLcode code) {
    CURL* const easy = transfer.easy.get();
    if (code != CURLE_OK) {
      std::string why = transfer.is_too_large   ? "the answer is too large"
                        : transfer.sendings > 1 ? "the connection was lost before the answer"
                                                : curl_easy_strerror(code);
      return transfer.done(failure(was_sent(easy, code), std::move(why)));
    }
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    transfer.answer.status = static_cast<int>(status);
    transfer.answer.received = MonotonicClock::now();
    transfer.done(std::move(transfer.answer));
  }

  std::string ca_file_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Transfer>> incoming_;
  bool is_closed_ = false;

  // The thread's own.
  std::vector<std::unique_ptr<Transfer>> taken_;
  std::unordered_map<CURL*, std::unique_ptr<Transfer>> running_;
  std::jthread thread_;
};

Transfers::Transfers(Loop& loop, std::string ca_file)
    : loop_(loop), worker_(std::make_unique<Worker>(std::move(ca_file))) {}

Transfers::~Transfers() = default;

// libcurl alone tries the addresses of a family in turn, and a silent one uses up all the time that
// a connection has. So the name is looked up here, no more often than libcurl would do it, and of
// several addresses the first that accepts goes first.
Task<std::expected<std::string, HttpFailure>> Transfers::addresses_of(std::string url,
                                                                      MonotonicTime deadline) {
  using Result = std::expected<std::string, HttpFailure>;
  const auto name = name_in(url);
  if (!name) co_return Result(std::string());
  const std::string key = name->host + ':' + name->port;
  KnownName& known = names_[key];
  const MonotonicTime now = MonotonicClock::now();
  if (now < known.until) co_return Result(known.addresses);
  // Others use the former answer until the new one is here.
  if (!known.addresses.empty()) known.until = deadline;
  auto looking_up = look_up_name(name->host, name->port, deadline);
  auto addresses = co_await std::move(looking_up);
  if (addresses) {
    names_[key] = {key + ':' + *addresses, now + Millis(limits::dynamodb_name_kept)};
    co_return Result(names_[key].addresses);
  }
  names_.erase(key);
  co_return addresses;
}

Task<std::expected<std::string, HttpFailure>> Transfers::look_up_name(std::string host,
                                                                      std::string port,
                                                                      MonotonicTime deadline) {
  const auto failed = [&](const std::string& why) {
    return std::unexpected(HttpFailure{false, host + ": " + why});
  };
  auto looking_up = look_up(loop_, host, port, deadline);
  auto peers = co_await std::move(looking_up);
  if (!peers) co_return failed(peers.error().why);
  if (peers->size() > 1) {
    auto racing = first_that_accepts(loop_, *peers, deadline);
    const auto first = co_await std::move(racing);
    if (!first) co_return failed(first.error().why);
    const auto at = std::ranges::find(*peers, *first);
    std::rotate(peers->begin(), at, std::next(at));
  }
  std::string addresses;
  for (const Peer& peer : *peers) {
    addresses += (addresses.empty() ? "" : ",") + address_text(peer);
  }
  co_return addresses;
}

Task<HttpResult> Transfers::ask(HttpRequest request) {
  const MonotonicTime start = MonotonicClock::now();
  const Millis connecting = std::min(request.patience, Millis(limits::dynamodb_connect_max));
  auto finding = addresses_of(request.url, start + connecting);
  auto addresses = co_await std::move(finding);
  if (!addresses) co_return HttpResult(std::unexpected(std::move(addresses.error())));
  request.addresses = std::move(*addresses);
  const std::string used = request.addresses;
  request.patience = std::max(request.patience - (MonotonicClock::now() - start), Millis(1));
  const auto begin = [&](Resumption<HttpResult> resumption) {
    Loop& loop = loop_;
    worker_->start(
        std::move(request), [&loop, resumption = std::move(resumption)](HttpResult result) mutable {
          loop.post([resumption = std::move(resumption), result = std::move(result)]() mutable {
            resumption(std::move(result));
          });
        });
  };
  auto waiting = suspend<HttpResult>(begin);
  HttpResult result = co_await waiting;
  // Perhaps none of them is the service's any more.
  if (!result && !result.error().was_sent) {
    std::erase_if(names_, [&](const auto& one) { return one.second.addresses == used; });
  }
  co_return result;
}

void Transfers::close() { worker_->close(); }

bool Transfers::is_closed() const noexcept { return worker_->is_closed(); }

}  // namespace idem::dynamodb
