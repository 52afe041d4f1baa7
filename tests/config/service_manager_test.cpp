#include "cli/process/service_manager.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

/// A loop that stands still must end the notifications.
namespace idem::cli {
namespace {

TEST(ServiceManager, a_loop_that_stands_still_ends_the_signs_of_life) {
  const test::TempDir dir;
  const std::string path = dir.path() / "notify";
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  ::setenv("WATCHDOG_USEC", "6000", 1);
  const auto signs = [&] {
    int count = 0;
    for (char text[64]; ::recv(socket, text, sizeof text, 0) > 0;) ++count;
    return count;
  };
  ServiceManager manager;
  Loop loop;
  manager.watch({&loop});
  const auto look_for = [&](int milliseconds) {
    const auto end = MonotonicClock::now() + Millis(milliseconds);
    while (MonotonicClock::now() < end) manager.look();
  };
  look_for(20);
  EXPECT_EQ(signs(), 1) << "the loop has run nothing yet";
  std::thread thread([&] { loop.run("idem-test"); });
  for (int seen = 0; seen < 3; seen += signs()) manager.look();
  loop.stop();
  thread.join();
  (void)signs();
  look_for(20);
  EXPECT_LE(signs(), 1);
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
  ::close(socket);
}

}  // namespace
}  // namespace idem::cli
