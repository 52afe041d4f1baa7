#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "support/back_off.hpp"
#include "support/bulk.hpp"
#include "support/scripted_live.hpp"

namespace idem::test {
namespace {

/// Keyed bodies that do not fit into the memory a request may have.
class Spill : public Scripted {
 protected:
  void SetUp() override {
    Scripted::SetUp();
    std::filesystem::create_directory(spill_dir());
  }
  std::string spill_dir() const { return (dir_.path() / "spill").string(); }
  std::vector<std::string> flags() const {
    return {"--request-body-max", "64MiB", "--spill-dir", spill_dir()};
  }
  bool nothing_visible() const { return std::filesystem::is_empty(spill_dir()); }
  int held() const { return unlinked_files(gateway_->process().pid(), spill_dir()); }
  /// A thread closes the files, after the answer.
  bool none_is_held() const {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (held() > 0 && std::chrono::steady_clock::now() < end) back_off();
    return held() == 0;
  }

  static Request upload(std::string_view key, std::string body) {
    auto request = without(charge(key, {}, body), "Content-Type");
    return with(std::move(request), "Content-Type", "application/octet-stream");
  }
};

TEST_F(Spill, T41_a_large_body_arrives_byte_for_byte_and_its_whole_counts) {
  std::string arrived;
  ASSERT_NO_FATAL_FAILURE(start(
      [&](UpstreamConnection& connection) {
        while (const auto request = connection.read_request()) {
          arrived = request->body;
          connection.write(
              "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
              "Content-Length: 4\r\n\r\ndone");
        }
      },
      flags()));
  Connection client(gateway_->address());
  for (const std::size_t size : {65'535UL, 65'536UL, 65'537UL, 131'073UL, 5'000'001UL}) {
    const auto key = std::to_string(size);
    auto body = pattern_text(size);
    const auto first = client.exchange(upload(key, body));
    EXPECT_EQ(first.status, 200) << first.raw;
    EXPECT_TRUE(arrived == body) << size;
    EXPECT_TRUE(replays(first, client.exchange(upload(key, body))));
    auto chunked = with(upload(key, {}), "Transfer-Encoding", "chunked");
    char length[32];
    std::snprintf(length, sizeof length, "%zx\r\n", size);
    chunked.body = length + body + "\r\n0\r\n\r\n";
    EXPECT_TRUE(replays(first, client.exchange(chunked)));
    body.back() = static_cast<char>(body.back() + 1);
    EXPECT_TRUE(is_problem(client.exchange(upload(key, body)), 422, "key_reused"));
    EXPECT_TRUE(nothing_visible());
  }
  EXPECT_EQ(upstream_->requests(), 5);
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/"}).status, 200);
  EXPECT_TRUE(none_is_held()) << "a file outlived its request";
}

TEST_F(Spill, concurrent_uploads_stay_out_of_memory) {
  const std::uint64_t size = (sanitized ? 4 : 32) * mebibyte;
  constexpr int uploads = 6;
  Gate answer;
  ASSERT_NO_FATAL_FAILURE(start(
      [&](UpstreamConnection& connection) {
        std::string seen;
        if (!read_until(connection.socket(), seen, "\r\n\r\n")) return;
        if (seen.starts_with("GET")) return void(connection.write_answer("warm"));
        const auto body = seen.substr(seen.find("\r\n\r\n") + 4);
        const bool intact = receive_pattern(connection.socket(), body, size);
        connection.write(intact ? "HTTP/1.1 103 Early Hints\r\n\r\n" : "broken");
        answer.wait();
        connection.write_answer();
      },
      flags()));
  const auto pid = gateway_->process().pid();
  ask({.method = "GET", .target = "/"});
  const auto before = anonymous_bytes(pid);
  ASSERT_GT(before, 0U);

  const auto whole = with(upload("k", {}), "Content-Length", std::to_string(size));
  std::list<Connection> clients;
  std::vector<std::thread> senders;
  for (int i = 0; i < uploads; ++i) {
    auto& client = clients.emplace_back(gateway_->address());
    auto request = with(without(whole, "Idempotency-Key"), "Idempotency-Key", std::to_string(i));
    senders.emplace_back([&client, request] {
      client.send(request);
      send_pattern(client.socket(), size);
    });
  }
  for (auto& sender : senders) sender.join();
  // The early hints say that the upstream has the whole body, which the gateway still holds.
  for (auto& client : clients) {
    std::string hint;
    EXPECT_TRUE(read_until(client.socket(), hint, "\r\n\r\n"));
    EXPECT_TRUE(hint.starts_with("HTTP/1.1 103")) << hint;
  }
  const auto during = anonymous_bytes(pid);
  EXPECT_EQ(held(), uploads);
  EXPECT_TRUE(nothing_visible());
  answer.open();
  for (auto& client : clients) EXPECT_EQ(client.read_response().status, 200);
  RecordProperty("growth_kib", static_cast<int>((during - std::min(before, during)) / 1024));
  if (!sanitized) {
    EXPECT_LT(during, before + 8 * mebibyte);
  }
}

TEST_F(Spill, R01_a_disk_that_hangs_holds_up_the_large_bodies_alone) {
  if (sanitized) GTEST_SKIP() << "a sanitizer's library has to be the first";
  const auto hangs = dir_.path() / "hangs";
  ASSERT_NO_FATAL_FAILURE(
      start(ScriptedUpstream::answer_all, flags(),
            {.environment = {"LD_PRELOAD=" IDEM_BIN_DIR "/libidem_hanging_disk.so",
                             "IDEM_HANGING_FOLDER=" + spill_dir(),
                             "IDEM_DISK_HANGS=" + hangs.string()}}));
  Connection client(gateway_->address());
  std::ofstream(hangs).put('x');
  Connection large(gateway_->address());
  large.send(upload("large", pattern_text(100'000)));
  for (int i = 0; i < 100; ++i) {
    const auto answer = client.exchange(upload("small" + std::to_string(i), "{}"));
    ASSERT_EQ(answer.status, 200) << i << ": " << answer.raw;
  }
  EXPECT_EQ(upstream_->requests(), 100);
  std::filesystem::remove(hangs);
  EXPECT_EQ(large.read_response().status, 200);
  EXPECT_EQ(upstream_->requests(), 101);
}

// The canonical form is made in memory; the allocator kept it, once per loop.
TEST_F(Spill, large_json_leaves_no_memory_behind) {
  ASSERT_NO_FATAL_FAILURE(start(ScriptedUpstream::answer_all, flags()));
  std::string body = "[0";
  while (body.size() < 8 * mebibyte) body += R"(,{"amount":1250,"name":"abcdefgh"})";
  body += ']';
  const auto pid = gateway_->process().pid();
  Connection client(gateway_->address());
  client.exchange({.method = "GET", .target = "/"});
  const auto before = anonymous_bytes(pid);
  for (const auto* key : {"a", "b", "c", "d"}) {
    EXPECT_EQ(client.exchange(charge(key, {}, body)).status, 200);
  }
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/"}).status, 200);
  if (!sanitized) {
    EXPECT_LT(anonymous_bytes(pid), before + 8 * mebibyte);
  }
}

TEST_F(Spill, P30_a_full_disk_fails_closed_before_anything_is_reserved_or_sent) {
  ASSERT_NO_FATAL_FAILURE(
      start(ScriptedUpstream::answer_all, flags(), {.file_bytes_max = mebibyte}));
  const auto body = pattern_text(mebibyte + 100'000);
  const auto refused = ask(upload("k", body));
  EXPECT_TRUE(is_problem(refused, 503, "store_unavailable"));
  EXPECT_EQ(json_text(refused.body, "retry"), "same_key");
  EXPECT_TRUE(refused.get("Retry-After"));
  EXPECT_TRUE(nothing_visible());
  EXPECT_EQ(upstream_->requests(), 0);
  // Under the same key another body would be misuse, had the refused one left a trace.
  const auto small = ask(charge("k"));
  EXPECT_EQ(small.status, 200) << small.raw;
  EXPECT_FALSE(small.get("Idempotent-Replayed"));
  EXPECT_EQ(upstream_->requests(), 1);
  EXPECT_TRUE(none_is_held());
}

TEST_F(Spill, a_directory_that_cannot_be_written_is_refused_at_start) {
  const Provider provider;
  Gateway gateway({.upstream = provider.address(),
                   .store = dir_.path() / "idem.db",
                   .flags = {"--spill-dir", spill_dir() + "/missing"}});
  EXPECT_FALSE(gateway.running());
  EXPECT_EQ(gateway.process().exit_code(), 1);
  EXPECT_NE(gateway.process().output().find("--spill-dir"), std::string::npos);
  EXPECT_NE(gateway.process().output().find("missing"), std::string::npos);
}

// The folder of the store takes them, and nothing else of the store is made beside it.
TEST_F(Spill, a_folder_that_nobody_named_is_said_to_be_that_of_the_store) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Provider provider;
  const std::string store = dir_.path() / "store";
  std::filesystem::create_directory(store);
  ASSERT_EQ(::chown(store.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const auto ran =
      run_program("/usr/bin/setpriv", {"--reuid=65534", "--regid=65534", "--clear-groups",
                                       built_program("idem"), "gateway", "--listen", "127.0.0.1:0",
                                       "--upstream", "http://" + provider.address(), "--store",
                                       "embedded:" + store, "--scope", "static:s"});
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  for (const std::string& part :
       {std::string("spill_dir is not given, so that it is the folder of the store"),
        std::string("Permission denied; "), std::string(": chown "),
        std::string("it may name another: ")}) {
    EXPECT_TRUE(ran.output.contains(part)) << part << "\n" << ran.output;
  }
}

}  // namespace
}  // namespace idem::test
