#include <fmt/core.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// Latency at a fixed rate: `open_loop PORT first|mixed|unkeyed REQUESTS_PER_SECOND SECONDS
/// CONNECTIONS`. `mixed`: every other request has a key that was answered in this run, any of them.
///
/// Requests are due by a clock that waits for nobody, and their latency counts from when they were
/// due, so that what a slow server keeps waiting is counted, too (no coordinated omission). Prints
/// percentiles in milliseconds, and how many were late to be answered at the end.

namespace {

using Clock = std::chrono::steady_clock;
using Moment = Clock::time_point;

constexpr std::string_view body =
    R"({"amount":4200,"currency":"eur","source":"tok_visa","description":"order 1"})";

[[noreturn]] void fail(const char* what) {
  fmt::print(stderr, "open_loop: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

enum class Kind : std::uint8_t { first, mixed, unkeyed };

Kind kind_of(std::string_view name) {
  if (name == "first") return Kind::first;
  return name == "mixed" ? Kind::mixed : Kind::unkeyed;
}

struct Connection {
  int socket = -1;
  Moment due{};              ///< Of the request that is under way.
  std::uint64_t number = 0;  ///< Its key's.
  bool busy = false;
  std::string got;
};

class OpenLoop {
 public:
  OpenLoop(int port, Kind kind, double rate, double seconds, int connections)
      : kind_(kind), between_(1.0 / rate), requests_(static_cast<std::size_t>(rate * seconds)) {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) fail("getrandom");
    prefix_ = fmt::format("{:016x}-", random);
    latencies_.reserve(requests_);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < connections; ++i) connect(port);
  }

  void run() {
    const Moment start = Clock::now();
    std::size_t due = 0;
    // A request not answered a second after the end counts as late.
    const auto over = [&] { return due == requests_ && in_flight_ == 0 && waiting_.empty(); };
    const Moment last =
        start + seconds(static_cast<double>(requests_) * between_) + std::chrono::seconds(1);
    while (!over() && Clock::now() < last) {
      const Moment now = Clock::now();
      while (due < requests_ && start + seconds(static_cast<double>(due) * between_) <= now) {
        waiting_.push_back(start + seconds(static_cast<double>(due++) * between_));
      }
      while (!waiting_.empty() && !idle_.empty()) send_next();
      poll(due < requests_ ? start + seconds(static_cast<double>(due) * between_) : last);
    }
  }

  void print() {
    std::ranges::sort(latencies_);
    const auto at = [&](double part) {
      if (latencies_.empty()) return 0.0;
      const auto index = static_cast<std::size_t>(part * static_cast<double>(latencies_.size()));
      return latencies_[std::min(index, latencies_.size() - 1)] * 1e3;
    };
    fmt::print("p50={:.3f} p90={:.3f} p99={:.3f} p999={:.3f} answered={} late={} refused={}\n",
               at(0.5), at(0.9), at(0.99), at(0.999), latencies_.size(),
               requests_ - latencies_.size() - refused_, refused_);
  }

 private:
  static Clock::duration seconds(double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  }

  void connect(int port) {
    auto made = std::make_unique<Connection>();
    made->socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(made->socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      fail("connect");
    }
    const int on = 1;
    ::setsockopt(made->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(made->socket, F_SETFL, O_NONBLOCK);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = made.get()}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, made->socket, &event);
    idle_.push_back(made.get());
    connections_.push_back(std::move(made));
  }

  void send_next() {
    Connection& connection = *idle_.back();
    idle_.pop_back();
    connection.due = waiting_.front();
    waiting_.pop_front();
    connection.busy = true;
    connection.got.clear();
    connection.number = next_number();
    const std::string request =
        kind_ != Kind::unkeyed
            ? fmt::format(
                  "POST /v1/payments HTTP/1.1\r\nHost: bench\r\nX-Tenant-Id: bench\r\n"
                  "Content-Type: application/json\r\nIdempotency-Key: {}{}\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  prefix_, connection.number, body.size(), body)
            : "GET /v1/payments HTTP/1.1\r\nHost: bench\r\nX-Tenant-Id: bench\r\n\r\n";
    // Far less than a socket's buffer, which is empty: it is taken whole.
    const auto sent = ::send(connection.socket, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(request.size())) fail("send");
    ++in_flight_;
  }

  std::uint64_t next_number() {
    is_replay_ = !is_replay_;
    if (kind_ != Kind::mixed || !is_replay_ || answered_.empty()) return ++number_;
    return answered_[random_() % answered_.size()];
  }

  // Until something is answered, or the next is due.
  void poll(Moment next) {
    const auto left = std::max(next - Clock::now(), Clock::duration::zero());
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    const timespec pause{whole.count(), std::chrono::nanoseconds(left - whole).count()};
    epoll_event events[64];
    const int count = ::epoll_pwait2(epoll_, events, 64, &pause, nullptr);
    for (int i = 0; i < count; ++i) read(*static_cast<Connection*>(events[i].data.ptr));
  }

  void read(Connection& connection) {
    char bytes[16384];
    const auto got = ::recv(connection.socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) {
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      errno = got == 0 ? ECONNRESET : errno;
      fail("recv");
    }
    connection.got.append(bytes, static_cast<std::size_t>(got));
    if (!connection.busy || !is_whole(connection.got)) return;
    const double took = std::chrono::duration<double>(Clock::now() - connection.due).count();
    if (connection.got.starts_with("HTTP/1.1 2")) {
      latencies_.push_back(took);
      if (kind_ == Kind::mixed) answered_.push_back(connection.number);
    } else {
      ++refused_;
    }
    connection.busy = false;
    --in_flight_;
    idle_.push_back(&connection);
  }

  static bool is_whole(std::string_view answer) {
    const auto end = answer.find("\r\n\r\n");
    if (end == answer.npos) return false;
    static constexpr std::string_view name = "Content-Length: ";
    auto field = answer.find(name);
    if (field == answer.npos) field = answer.find("content-length: ");  // HAProxy's spelling
    if (field == answer.npos || field > end) return false;
    return answer.size() >=
           end + 4 + std::strtoull(answer.data() + field + name.size(), nullptr, 10);
  }

  const Kind kind_;
  const double between_;
  const std::size_t requests_;
  std::string prefix_;
  std::uint64_t number_ = 0;
  bool is_replay_ = true;
  std::vector<std::uint64_t> answered_;
  std::minstd_rand random_;
  int epoll_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;
  std::deque<Moment> waiting_;
  std::size_t in_flight_ = 0;
  std::size_t refused_ = 0;
  std::vector<double> latencies_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "usage: open_loop PORT first|mixed|unkeyed RATE SECONDS CONNECTIONS\n");
    return 2;
  }
  OpenLoop loop(std::atoi(argv[1]), kind_of(argv[2]), std::atof(argv[3]), std::atof(argv[4]),
                std::atoi(argv[5]));
  loop.run();
  loop.print();
  return 0;
}
