#include <sys/stat.h>

#include <fstream>
#include <regex>

#include "support/admin.hpp"
#include "support/live.hpp"
#include "support/script.hpp"

/// A gateway that is started on another store than the one with its records runs every key again:
/// the store does not depend on where it is started, each start tells which one it found, and one
/// that is pinned and gone is refused. A start on a full disk is refused with a sentence.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

class WhichStoreAtStart : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    for (const char* const name : {"etc", "a", "b"}) fs::create_directory(dir_.path() / name);
  }
  std::string config(const std::string& more) const {
    const auto file = dir_.path() / "etc" / "idem.yaml";
    std::ofstream(file) << "listen: 127.0.0.1:0\nupstream: {url: \"http://" << provider_.address()
                        << "\"}\nscope: {from: \"header:X-Tenant-Id\", trust_header: true}\n"
                        << more;
    return file.string();
  }
  std::unique_ptr<Process> start_in(const std::string& folder, const std::string& file,
                                    std::vector<std::string> more = {}) const {
    std::vector<std::string> words{
        "-C", (dir_.path() / folder).string(), built_program("idem"), "gateway", "--config", file};
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Process>(
        ProcessOptions{.program = "/usr/bin/env", .arguments = std::move(words)});
  }
  static std::string store_id_of(Process& process) {
    std::smatch match;
    const std::string output = process.output();
    const std::regex id("store_id=\"?([0-9a-f-]{36})");
    return std::regex_search(output, match, id) ? match[1].str() : std::string("none");
  }
  static void end(Process& process) {
    process.signal(SIGTERM);
    EXPECT_EQ(process.exit_code(), 0) << process.output();
  }
  fs::path store() const { return dir_.path() / "etc" / "idem.db"; }

  TempDir dir_;
  Provider provider_;
};

TEST_F(WhichStoreAtStart, the_store_of_a_file_does_not_depend_on_where_it_is_started) {
  for (const std::string& more : {std::string("store: sqlite:./idem.db\n"), std::string()}) {
    SCOPED_TRACE(more);
    const auto file = config(more);
    const std::string key = "key-" + std::to_string(more.size());
    auto first = start_in("a", file);
    const auto address = first->wait_for_address("gateway");
    ASSERT_FALSE(address.empty());
    EXPECT_EQ(send_once(address, charge(key)).status, 201);
    const auto id = store_id_of(*first);
    EXPECT_EQ(id.size(), 36U) << first->output();
    end(*first);
    auto second = start_in("b", file);
    const auto again = second->wait_for_address("gateway");
    ASSERT_FALSE(again.empty());
    EXPECT_EQ(send_once(again, charge(key)).status, 201);
    EXPECT_EQ(provider_.effects(key), 1);
    EXPECT_EQ(store_id_of(*second), id);
    EXPECT_EQ(second->output().find("store_new"), std::string::npos) << second->output();
    EXPECT_NE(second->output().find("place=" + store().string()), std::string::npos);
    end(*second);
  }
  EXPECT_TRUE(fs::is_empty(dir_.path() / "a") && fs::is_empty(dir_.path() / "b"));
}

TEST_F(WhichStoreAtStart, a_new_store_is_warned_of_and_its_records_are_counted) {
  const auto file = config("log_format: json\n");
  auto first = start_in("a", file);
  const auto address = first->wait_for_line("\"role\":\"gateway\"");
  ASSERT_TRUE(address) << first->output();
  const auto warned = first->wait_for_line("\"event\":\"store_new\"");
  ASSERT_TRUE(warned) << first->output();
  EXPECT_NE(warned->find("\"level\":\"warning\""), std::string::npos) << *warned;
  const auto opened = first->wait_for_line("\"event\":\"store_opened\"");
  ASSERT_TRUE(opened) << first->output();
  EXPECT_NE(opened->find("\"records\":0}"), std::string::npos) << *opened << " has no number";
  end(*first);
  const auto text = config("");
  auto second = start_in("a", text);
  const auto there = second->wait_for_address("gateway");
  for (const char* const key : {"one", "two", "three"}) send_once(there, charge(key));
  end(*second);
  auto third = start_in("b", text);
  ASSERT_TRUE(third->wait_for_line("store_opened")) << third->output();
  third->wait_for_address("gateway");
  EXPECT_NE(third->output().find("records=3"), std::string::npos) << third->output();
  end(*third);
}

TEST_F(WhichStoreAtStart, a_pinned_store_that_is_gone_is_refused) {
  const auto file = config("");
  auto first = start_in("a", file);
  ASSERT_FALSE(first->wait_for_address("gateway").empty());
  const auto id = store_id_of(*first);
  end(*first);
  const auto pinned = config("store_id: " + id + "\n");
  auto same = start_in("b", pinned);
  ASSERT_FALSE(same->wait_for_address("gateway").empty()) << same->output();
  end(*same);

  fs::rename(store(), dir_.path() / "moved.db");
  auto gone = start_in("a", pinned);
  EXPECT_EQ(gone->exit_code(), 1) << "its disk may be mounted later";
  EXPECT_NE(gone->output().find(id), std::string::npos) << gone->output();
  EXPECT_FALSE(fs::exists(store())) << "and nothing was made";

  auto other = start_in("a", config(""));
  ASSERT_FALSE(other->wait_for_address("gateway").empty());
  const auto other_id = store_id_of(*other);
  EXPECT_NE(other_id, id);
  end(*other);
  auto refused = start_in("a", config(""), {"--store-id", id});
  EXPECT_EQ(refused->exit_code(), 2) << "no repetition helps";
  EXPECT_NE(refused->output().find(id), std::string::npos) << refused->output();
  EXPECT_NE(refused->output().find(other_id), std::string::npos) << refused->output();
}

/// A file at the process's size limit is a full disk: at no size may a start end in an abort.
TEST_F(WhichStoreAtStart, a_full_disk_at_a_start_is_an_error_with_a_sentence) {
  const auto path = dir_.path() / "full.db";
  const auto is_refused = [&](std::vector<std::string> words, std::uint64_t bytes) {
    Process process(
        {.program = built_program("idem"), .arguments = std::move(words), .file_bytes_max = bytes});
    const int code = process.exit_code();
    EXPECT_EQ(code, 1) << bytes << "\n" << process.output();
    EXPECT_NE(process.output().find("disk"), std::string::npos) << process.output();
  };
  const std::vector<std::string> gateway{"gateway",
                                         "--listen",
                                         "127.0.0.1:0",
                                         "--upstream",
                                         "http://127.0.0.1:9",
                                         "--scope",
                                         "authorization",
                                         "--store",
                                         "sqlite:" + path.string()};
  for (const std::uint64_t bytes : {1UL, 100UL, 4'096UL, 40'000UL, 100'000UL, 300'000UL}) {
    is_refused(gateway, bytes);
    is_refused({"migrate", "--store", "sqlite:" + path.string()}, bytes);
    fs::remove(path);
    fs::remove(path.string() + "-wal");
  }
  ASSERT_EQ(run_program(built_program("idem"), {"migrate", "--store", "sqlite:" + path.string()})
                .exit_code,
            0);
  // The writes of a start to an existing store find no room in the log.
  for (const std::uint64_t bytes : {1UL, 4'000UL, 100'000UL, 300'000UL}) {
    is_refused(gateway, bytes);
    is_refused({"worker", "--store", "sqlite:" + path.string()}, bytes);
  }
}

TEST_F(WhichStoreAtStart, a_log_at_a_size_limit_is_an_error_with_a_sentence) {
  const std::string url = "embedded:" + (dir_.path() / "full.log").string();
  for (const std::uint64_t bytes : {1UL, 4'096UL, 300'000UL, 60'000'000UL}) {
    Process process(
        {.program = built_program("idem"),
         .arguments = {"gateway", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9",
                       "--scope", "authorization", "--store", url},
         .file_bytes_max = bytes});
    EXPECT_EQ(process.exit_code(), 1) << bytes << "\n" << process.output();
    EXPECT_NE(process.output().find("disk is full for this process"), std::string::npos)
        << process.output();
  }
}

TEST_F(WhichStoreAtStart, a_full_file_system_at_a_start_is_an_error_with_a_sentence) {
  const std::string here = dir_.path().string();
  for (const std::string scheme : {"sqlite", "embedded"}) {
    // Root of a name space of its own is enough for a file system of 64 KiB.
    const std::string made = "unshare -rm sh -c 'mount -t tmpfs -o size=64k none " + here +
                             "/a 2>/dev/null || exit 77; head -c 60000 /dev/zero > " + here +
                             "/a/fill; " + built_program("idem").string() +
                             " gateway --listen 127.0.0.1:0 --upstream http://127.0.0.1:9 --scope "
                             "authorization --store " +
                             scheme + ":" + here +
                             "/a/idem.db 2>&1; echo code=$?' || echo code=none";
    const auto output = output_of(made + "; true");
    if (output.find("code=") == output.npos || output.ends_with("code=none")) {
      GTEST_SKIP() << "no file system of one's own can be mounted here: " << output;
    }
    EXPECT_NE(output.find("code=1"), output.npos) << output;
    EXPECT_NE(output.find("disk is full"), output.npos) << output;
  }
}

}  // namespace
}  // namespace idem::test
