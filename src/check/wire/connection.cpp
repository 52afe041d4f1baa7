#include "check/wire/connection.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace idem::check {
namespace {

using Millis = Connection::Millis;
using Clock = std::chrono::steady_clock;

struct CurlDeleter {
  void operator()(CURL* curl) const noexcept { curl_easy_cleanup(curl); }
};
using Curl = std::unique_ptr<CURL, CurlDeleter>;

void start_curl() {
  static const bool once = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  (void)once;
}

/// One that no command inherits.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

Curl new_curl(const std::string& url, Millis timeout, bool insecure, char* error) {
  start_curl();
  Curl curl(curl_easy_init());
  if (!curl) return curl;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout.count()));
  curl_easy_setopt(curl.get(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  // A proxy of the environment would see all requests, and answer in place of the API.
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  if (insecure) {
    curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl.get(), CURLOPT_SSL_VERIFYHOST, 0L);
  }
  return curl;
}

bool is_loopback_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address, sizeof four);
    return (ntohl(four.sin_addr.s_addr) >> 24) == 127;
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 six{};
  std::memcpy(&six, &address, sizeof six);
  return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
}

std::size_t append(char* bytes, std::size_t size, std::size_t count, void* to) {
  constexpr std::size_t most = 1024UL * 1024;
  auto& text = *static_cast<std::string*>(to);
  if (text.size() + size * count > most) return 0;
  text.append(bytes, size * count);
  return size * count;
}

}  // namespace

// ---- Origin ----

std::string Origin::authority() const {
  const std::string name = host.contains(':') ? '[' + host + ']' : host;
  return port == (is_tls ? "443" : "80") ? name : name + ':' + port;
}

std::string Origin::text() const { return (is_tls ? "https://" : "http://") + authority(); }

bool Origin::is_loopback() const {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (!is_loopback_address(*one->ai_addr)) return false;
  }
  return found != nullptr;
}

std::expected<Origin, std::string> Origin::parse(std::string_view url, std::string* path) {
  Origin origin;
  constexpr std::string_view plain = "http://";
  constexpr std::string_view tls = "https://";
  origin.is_tls = url.starts_with(tls);
  if (!origin.is_tls && !url.starts_with(plain)) {
    return std::unexpected("a URL begins with http:// or https://");
  }
  url.remove_prefix(origin.is_tls ? tls.size() : plain.size());
  const auto end = std::min(url.find_first_of("/?#"), url.size());
  std::string_view authority = url.substr(0, end);
  if (path != nullptr) *path = url.substr(end, url.find('#') - end);
  if (authority.contains('@')) {
    return std::unexpected("a URL with a name or password is refused: put credentials in headers");
  }
  const bool is_six = authority.starts_with('[');
  const auto colon = authority.find(':', is_six ? authority.find(']') : 0);
  std::string_view host = authority.substr(0, colon);
  if (is_six && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  origin.host = host;
  origin.port = colon == authority.npos ? (origin.is_tls ? "443" : "80")
                                        : std::string(authority.substr(colon + 1));
  const bool is_number =
      std::ranges::all_of(origin.port, [](char c) { return c >= '0' && c <= '9'; });
  if (origin.host.empty()) return std::unexpected("the URL has no host");
  if (origin.port.empty() || origin.port.size() > 5 || !is_number) {
    return std::unexpected("the URL's port is no number");
  }
  return origin;
}

// ---- Connection ----

struct Connection::Handle {
  Curl curl;
  curl_socket_t socket = CURL_SOCKET_BAD;
  char error[CURL_ERROR_SIZE] = {};

  bool wait(short events, Clock::time_point until) const {
    for (;;) {
      const auto left = std::chrono::ceil<Millis>(until - Clock::now());
      if (left <= Millis(0)) return false;
      pollfd one{socket, events, 0};
      const int ready = ::poll(&one, 1, static_cast<int>(left.count()));
      if (ready > 0) return true;
      if (ready == 0) return false;
      if (errno != EINTR) return true;  // The next call reports it.
    }
  }
};

Connection::Connection(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

std::expected<Connection, std::string> Connection::open(const Origin& origin, Millis timeout,
                                                        bool insecure) {
  auto handle = std::make_unique<Handle>();
  handle->curl = new_curl(origin.text(), timeout, insecure, handle->error);
  if (!handle->curl) return std::unexpected("out of memory");
  CURL* const curl = handle->curl.get();
  curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_ENABLE_ALPN, 0L);
  const CURLcode result = curl_easy_perform(curl);
  if (result != CURLE_OK) {
    return std::unexpected(handle->error[0] != '\0' ? handle->error : curl_easy_strerror(result));
  }
  curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &handle->socket);
  if (handle->socket == CURL_SOCKET_BAD) return std::unexpected("no connection");
  return Connection(std::move(handle));
}

std::expected<void, std::string> Connection::send(std::string_view bytes, Millis timeout) {
  const auto until = Clock::now() + timeout;
  while (!bytes.empty()) {
    std::size_t sent = 0;
    const auto result = curl_easy_send(handle_->curl.get(), bytes.data(), bytes.size(), &sent);
    bytes.remove_prefix(sent);
    if (result == CURLE_OK) continue;
    if (result != CURLE_AGAIN) return std::unexpected("the connection ended while sending");
    if (!handle_->wait(POLLOUT, until)) return std::unexpected("the API reads nothing");
  }
  return {};
}

std::expected<Answer, std::string> Connection::read(Millis timeout, std::string& seen) {
  const auto until = Clock::now() + timeout;
  AnswerReader reader;
  // Also an answer that keeps coming must end in time.
  while (Clock::now() < until) {
    char buffer[16 * 1024];
    std::size_t got = 0;
    const auto result = curl_easy_recv(handle_->curl.get(), buffer, sizeof buffer, &got);
    if (result == CURLE_AGAIN) {
      handle_->wait(POLLIN, until);
      continue;
    }
    const bool is_whole = result == CURLE_OK && got > 0 ? reader.add({buffer, got}) : reader.end();
    if (is_whole || !reader.failure().empty()) seen = reader.bytes();
    if (is_whole) return reader.take();
    if (!reader.failure().empty()) return std::unexpected(reader.failure());
  }
  seen = reader.bytes();
  return std::unexpected("no whole answer within " + std::to_string(timeout.count()) + " ms");
}

bool Connection::wait_for_byte(Millis timeout) {
  return handle_->wait(POLLIN, Clock::now() + timeout);
}

void Connection::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(handle_->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  handle_->curl.reset();
  handle_->socket = CURL_SOCKET_BAD;
}

std::expected<std::string, std::string> fetch(const std::string& url, const Fields& fields,
                                              std::chrono::milliseconds timeout, bool insecure) {
  char error[CURL_ERROR_SIZE] = {};
  const Curl curl = new_curl(url, timeout, insecure, error);
  if (!curl) return std::unexpected("out of memory");
  curl_slist* list = nullptr;
  for (const auto& [name, value] : fields) {
    list = curl_slist_append(list, (name + ": " + value).c_str());
  }
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> owned(list,
                                                                          &curl_slist_free_all);
  std::string body;
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, list);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  const CURLcode result = curl_easy_perform(curl.get());
  if (result == CURLE_OK) return body;
  return std::unexpected(error[0] != '\0' ? error : curl_easy_strerror(result));
}

}  // namespace idem::check
