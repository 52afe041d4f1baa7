#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/live.hpp"

/// The next process takes over the listening sockets: by SIGUSR2 from this one, or from systemd.
namespace idem::test {
namespace {

/// Rounds of each test: IDEM_HANDOVERS, or 2.
int handovers() {
  const char* number = std::getenv("IDEM_HANDOVERS");
  return number == nullptr ? 2 : std::atoi(number);
}

/// Clients that send charges with keys of their own over connections that stay open, for as long
/// as this object lives.
class SteadyLoad {
 public:
  explicit SteadyLoad(const std::string& address) {
    for (int client = 0; client < 4; ++client) {
      threads_.emplace_back([this, address, client] { send_until_the_end(address, client); });
    }
  }
  ~SteadyLoad() { end(); }

  void end() {
    ending_ = true;
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  void wait_for_more(int requests) const {
    const int target = sent_ + requests;
    while (sent_ < target && failed_ == 0) std::this_thread::yield();
  }
  int sent() const { return sent_; }
  int failed() const { return failed_; }

 private:
  void send_until_the_end(const std::string& address, int client) {
    int number = 0;
    while (!ending_) {
      Connection connection(address);
      if (!connection.open()) {
        ++failed_;
        ADD_FAILURE() << "nobody listens";
        return;
      }
      for (bool stays = true; stays && !ending_;) {
        const auto answer = connection.exchange(charge(fmt::format("k{}-{}", client, ++number)));
        ++sent_;
        if (answer.status != 201) {
          ++failed_;
          ADD_FAILURE() << answer.status << " " << answer.trouble << " " << answer.body;
          return;
        }
        stays = answer.get("Connection").value_or("") != "close";
      }
    }
  }

  std::atomic<bool> ending_{false};
  std::atomic<int> sent_{0};
  std::atomic<int> failed_{0};
  std::vector<std::thread> threads_;
};

class Handover : public Live {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    provider_ = std::make_unique<Provider>();
    ASSERT_TRUE(provider_->running());
  }

  /// A package replaces the program in the same way.
  void replace_program() const {
    const auto next = dir_.path() / "next";
    std::filesystem::copy_file(built_program("idem"), next);
    std::filesystem::rename(next, program());
  }
  std::filesystem::path program() const { return dir_.path() / "idem"; }
  std::string running_program() {
    const auto link = fmt::format("/proc/{}/exe", gateway_->process().pid());
    return std::filesystem::read_symlink(link).string();
  }

  /// True once the next process listens.
  bool hand_over() {
    Process& process = gateway_->process();
    const auto before = process.output().size();
    process.signal(SIGUSR2);
    return process.wait_for_line("role=admin", patience, before).has_value();
  }
};

TEST_F(Handover, no_request_fails_while_the_next_program_takes_over) {
  auto how = options(provider_->address());
  replace_program();
  how.program = program().string();
  gateway_ = std::make_unique<Gateway>(how);
  ASSERT_TRUE(gateway_->running());
  SteadyLoad load(gateway_->address());
  for (int round = 0; round < handovers(); ++round) {
    load.wait_for_more(200);
    replace_program();
    EXPECT_NE(running_program(), program().string());
    ASSERT_TRUE(hand_over()) << gateway_->process().output();
    EXPECT_EQ(running_program(), program().string());
  }
  load.wait_for_more(200);
  load.end();
  fmt::print("handovers={} requests={} failed={}\n", handovers(), load.sent(), load.failed());
  EXPECT_EQ(load.failed(), 0);
  EXPECT_EQ(provider_->ledger().effects, load.sent());
  EXPECT_EQ(gateway_->terminate(), 0);
}

TEST_F(Handover, no_request_fails_while_a_service_manager_starts_the_process_again) {
  const int socket = listen_anywhere();
  ASSERT_GE(socket, 0);
  auto how = options(provider_->address());
  how.listen = local_address(socket);
  how.passed = {socket};
  how.passed_names = "idem.socket";
  gateway_ = std::make_unique<Gateway>(how);
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  SteadyLoad load(how.listen);
  for (int round = 0; round < handovers(); ++round) {
    load.wait_for_more(200);
    EXPECT_EQ(gateway_->terminate(), 0);
    gateway_ = std::make_unique<Gateway>(how);
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  load.wait_for_more(200);
  load.end();
  fmt::print("restarts={} requests={} failed={}\n", handovers(), load.sent(), load.failed());
  EXPECT_EQ(load.failed(), 0);
  EXPECT_EQ(provider_->ledger().effects, load.sent());
  ::close(socket);
}

TEST_F(Handover, a_request_under_way_gets_its_answer_and_later_ones_wait) {
  gateway_ = std::make_unique<Gateway>(options(provider_->address()));
  Connection first(gateway_->address());
  ASSERT_TRUE(first.send(charge("slow", "hold=here")));
  ASSERT_TRUE(provider_->wait_held("here", 1));
  Process& process = gateway_->process();
  const auto before = process.output().size();
  process.signal(SIGUSR2);
  ASSERT_TRUE(process.wait_for_line("draining", patience, before));
  Connection second(gateway_->address());
  ASSERT_TRUE(second.send(charge("later")));
  provider_->release("here");
  EXPECT_EQ(first.read_response().status, 201);
  EXPECT_EQ(second.read_response().status, 201);
  EXPECT_EQ(effects("slow"), 1);
  EXPECT_EQ(effects("later"), 1);
  EXPECT_TRUE(process.wait_for_line("role=admin", patience, before));
  EXPECT_TRUE(ask(charge("slow")).get("Idempotent-Replayed").has_value());
}

TEST_F(Handover, a_stop_that_comes_meanwhile_is_one) {
  gateway_ = std::make_unique<Gateway>(options(provider_->address()));
  Connection first(gateway_->address());
  ASSERT_TRUE(first.send(charge("slow", "hold=here")));
  ASSERT_TRUE(provider_->wait_held("here", 1));
  Process& process = gateway_->process();
  process.signal(SIGUSR2);
  ASSERT_TRUE(process.wait_for_line("draining"));
  process.signal(SIGTERM);
  provider_->release("here");
  EXPECT_EQ(first.read_response().status, 201);
  EXPECT_EQ(process.exit_code(), 0);
  EXPECT_EQ(effects("slow"), 1);
}

TEST_F(Handover, settings_that_the_next_process_would_refuse_leave_this_one_running) {
  const auto file = dir_.path() / "idem.yaml";
  std::ofstream(file) << "key: {min_length: 1}\n";
  auto how = options(provider_->address());
  how.flags.insert(how.flags.end(), {"--config", file.string()});
  gateway_ = std::make_unique<Gateway>(how);
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  std::ofstream(file) << "key: {min_length: none}\n";
  Process& process = gateway_->process();
  process.signal(SIGUSR2);
  const auto refused = process.wait_for_line("handover_refused");
  ASSERT_TRUE(refused.has_value());
  EXPECT_NE(refused->find("idem.yaml:1:"), std::string::npos) << *refused;
  const auto answer = ask(charge("k"));
  EXPECT_EQ(answer.status, 201);
  std::ofstream(file) << "key: {min_length: 1, scope: tenant}\n";
  const auto before = process.output().size();
  process.signal(SIGUSR2);
  const auto hidden = process.wait_for_line("handover_refused", patience, before);
  ASSERT_TRUE(hidden.has_value());
  EXPECT_NE(hidden->find("key.scope is 'operation' since"), std::string::npos) << *hidden;
  EXPECT_TRUE(replays(answer, ask(charge("k"))));
  std::ofstream(file) << "key: {min_length: 2}\n";
  ASSERT_TRUE(hand_over());
  EXPECT_TRUE(is_problem(ask(charge("o")), 400, "key_invalid"));
}

TEST_F(Handover, a_passed_socket_at_another_address_is_named_and_closed) {
  const int socket = listen_anywhere();
  const std::string elsewhere = local_address(socket);
  auto how = options(provider_->address());
  how.passed = {socket};
  how.passed_names = "other.socket";
  gateway_ = std::make_unique<Gateway>(how);
  ASSERT_TRUE(gateway_->running());
  ::close(socket);
  EXPECT_NE(gateway_->address(), elsewhere);
  const auto line = gateway_->process().wait_for_line("socket_not_used");
  ASSERT_TRUE(line.has_value());
  EXPECT_NE(line->find(elsewhere), std::string::npos) << *line;
  EXPECT_EQ(gateway_->terminate(), 0);
}

/// What a service manager reads at NOTIFY_SOCKET.
class Notifications {
 public:
  explicit Notifications(const std::filesystem::path& path)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.string().copy(name.sun_path, sizeof name.sun_path - 1);
    const timeval time{patience.count(), 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  }
  ~Notifications() { ::close(socket_); }
  Notifications(const Notifications&) = delete;
  Notifications& operator=(const Notifications&) = delete;

  /// The first line of the next one that is not `skipped`.
  std::string next(std::string_view skipped = "WATCHDOG=1") const {
    for (;;) {
      char text[512];
      const auto got = ::recv(socket_, text, sizeof text, 0);
      if (got <= 0) return "none";
      const std::string_view all(text, static_cast<std::size_t>(got));
      const auto line = all.substr(0, all.find('\n'));
      if (line != skipped) return std::string(line);
    }
  }

 private:
  int socket_;
};

TEST_F(Handover, the_service_manager_is_notified) {
  const auto path = dir_.path() / "notify";
  const Notifications manager(path);
  auto how = options(provider_->address());
  how.environment = {"NOTIFY_SOCKET=" + path.string(), "WATCHDOG_USEC=600000"};
  gateway_ = std::make_unique<Gateway>(how);
  ASSERT_TRUE(gateway_->running());
  EXPECT_EQ(manager.next(), "READY=1");
  EXPECT_EQ(manager.next(""), "WATCHDOG=1");
  EXPECT_EQ(manager.next(""), "WATCHDOG=1");
  gateway_->process().signal(SIGHUP);
  EXPECT_EQ(manager.next(), "RELOADING=1");
  EXPECT_EQ(manager.next(), "READY=1");
  ASSERT_TRUE(hand_over());
  EXPECT_EQ(manager.next(), "RELOADING=1");
  EXPECT_EQ(manager.next(), "READY=1");
  EXPECT_EQ(manager.next(""), "WATCHDOG=1");
  EXPECT_EQ(gateway_->terminate(), 0);
  EXPECT_EQ(manager.next(), "STOPPING=1");
}

}  // namespace
}  // namespace idem::test
