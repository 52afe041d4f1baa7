#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/admin.hpp"
#include "support/live.hpp"

/// Root once served a store, or repaired a part of it: each command that meets the files says whose
/// they are and how to give them back, and none says that the store is damaged.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t stores_user = 65534;

class WrongOwner : public Live, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
    IDEM_NEED_PROGRAM("idem");
    provider_ = std::make_unique<Provider>();
    fs::create_directory(home());
    {
      const Gateway gateway({.upstream = provider_->address(), .store_url = url()});
      ASSERT_TRUE(gateway.running());
      ASSERT_EQ(send_once(gateway.address(), charge("k")).status, 201);
    }
    give(home(), stores_user);
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  }

  std::string home() const { return dir_.path() / "home"; }
  std::string place() const { return home() + "/store"; }
  std::string url() const { return std::string(GetParam()) + ":" + place(); }

  static void give(const std::string& path, uid_t owner) {
    ASSERT_EQ(::lchown(path.c_str(), owner, owner), 0);
    if (!fs::is_directory(path)) return;
    for (const auto& entry : fs::directory_iterator(path)) give(entry.path(), owner);
  }

  Ran as_nobody(std::vector<std::string> words) const {
    std::vector<std::string> all{"--reuid=65534", "--regid=65534", "--clear-groups",
                                 built_program("idem")};
    all.insert(all.end(), words.begin(), words.end());
    return run_program("/usr/bin/setpriv", std::move(all));
  }

  std::vector<std::vector<std::string>> commands() const {
    const std::string other = std::string(GetParam()) + ":" + home() + "/other";
    return {{"gateway", "--listen", "127.0.0.1:0", "--upstream", "http://" + provider_->address(),
             "--store", url(), "--scope", "header:X-Tenant-Id", "--trust-scope-header"},
            {"store", "check", url()},
            {"store", "backup", url(), home() + "/backup"},
            {"store", "restore", place(), other},
            {"store", "copy", url(), other},
            {"store", "copy", "--prepare", url(), other},
            {"doctor", "--upstream", "http://" + provider_->address(), "--store", url(), "--scope",
             "header:X-Tenant-Id", "--trust-scope-header"}};
  }
};

TEST_P(WrongOwner, S22_is_named_by_each_command_with_the_command_that_repairs_it) {
  for (const auto& command : commands()) {
    give(place(), 0);
    const Ran ran = as_nobody(command);
    SCOPED_TRACE(command[0] + " " + command[1] + "\n" + ran.output);
    EXPECT_NE(ran.exit_code, 0);
    EXPECT_TRUE(ran.output.contains("Permission denied"));
    EXPECT_TRUE(ran.output.contains("belongs to root:root"));
    EXPECT_TRUE(ran.output.contains(": chown "));
    EXPECT_TRUE(ran.output.contains("bring back no copy"));
    for (const char* const wrong :
         {"is damaged", "corrupt", "store restore makes", "no such", "another process"}) {
      EXPECT_FALSE(ran.output.contains(wrong)) << wrong;
    }
    EXPECT_FALSE(fs::exists(home() + "/other"));
    EXPECT_FALSE(fs::exists(home() + "/backup"));
  }
  give(place(), stores_user);
  const Ran sound = as_nobody({"store", "check", url()});
  EXPECT_EQ(sound.exit_code, 0) << sound.output;
}

// Root has repaired one file, which all may read.
TEST_P(WrongOwner, S22_one_file_that_only_root_may_write_is_named_by_a_start_and_by_looks) {
  const bool is_directory = fs::is_directory(place());
  const std::string file = place() + (is_directory ? "/index/CURRENT" : "");
  give(file, 0);
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  for (const auto& command : {commands().front(), commands().back()}) {
    const Ran ran = as_nobody(command);
    SCOPED_TRACE(command[0] + "\n" + ran.output);
    EXPECT_NE(ran.exit_code, 0);
    EXPECT_TRUE(ran.output.contains("Permission denied"));
    EXPECT_TRUE(ran.output.contains(": chown "));
  }
}

// SQLite gives the files that it makes beside a database to the database's owner.
TEST_P(WrongOwner, S22_a_start_of_root_says_that_it_would_keep_the_stores_user_out) {
  fs::remove(place() + ".admin-token");  // Root refuses another user's.
  Gateway gateway({.upstream = provider_->address(), .store_url = url()});
  ASSERT_TRUE(gateway.running());
  const bool is_directory = fs::is_directory(place());
  const std::string output = gateway.process().output();
  EXPECT_EQ(output.contains("and this process is root"), is_directory) << output;
  EXPECT_EQ(output.contains(": chown -R "), is_directory) << output;
}

INSTANTIATE_TEST_SUITE_P(LocalStores, WrongOwner, testing::Values("sqlite", "embedded"),
                         [](const auto& chosen) { return std::string(chosen.param); });

}  // namespace
}  // namespace idem::test
