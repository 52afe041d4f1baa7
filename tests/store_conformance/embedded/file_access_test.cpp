#include "store/known_kinds.hpp"
#include "store/log/log_store.hpp"
#include "store_conformance/harness.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

/// What keeps a process from a local store's files is no damage of it, and no other process.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t other_user = 65534;
constexpr int stored_keys = 20;

/// The whole process has another user meanwhile.
class AsNobody {
 public:
  AsNobody() {
    EXPECT_EQ(::setegid(other_user), 0);
    EXPECT_EQ(::seteuid(other_user), 0);
  }
  ~AsNobody() {
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_EQ(::setegid(0), 0);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
};

enum class LockKind : std::uint8_t { whole_file, bytes };

/// From now on the calling thread gets no such locks, nor do threads that it makes: as on a file
/// system without them. False: this machine does not let a test do that.
bool take_locks_away(LockKind lock) {
  constexpr auto number_at = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto command_at = static_cast<std::uint32_t>(offsetof(seccomp_data, args[1]));
  const auto refuse = SECCOMP_RET_ERRNO | std::uint32_t{ENOLCK};
  const auto allow = std::uint32_t{SECCOMP_RET_ALLOW};
  std::vector<sock_filter> rules{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number_at)};
  if (lock == LockKind::whole_file) {
    rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1));
    rules.push_back(BPF_STMT(BPF_RET | BPF_K, refuse));
  } else {
    rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4));
    rules.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, command_at));
    rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLK, 1, 0));
    rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1));
    rules.push_back(BPF_STMT(BPF_RET | BPF_K, refuse));
  }
  rules.push_back(BPF_STMT(BPF_RET | BPF_K, allow));
  const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Each verb that meets the files of a store: its complaint, empty if it did its work.
struct FileVerb {
  const char* name;
  std::function<std::string()> run;
};

struct LocalStore {
  const char* name;
  std::uint32_t shards;
};

class FileAccess : public testing::TestWithParam<LocalStore> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
    ASSERT_EQ(::chown(folder_.file("").c_str(), other_user, other_user), 0);
    const AsNobody user;
    make();
  }

  std::string url(const std::string& path) const {
    return std::string(GetParam().name) + ":" + path;
  }
  const StoreFileKind& kind() const { return *known_kind_of(url(""))->linked->file; }
  std::string path(const std::string& name = "store") const { return folder_.file(name); }

  std::expected<std::unique_ptr<Store>, std::string> open(const std::string& at) const {
    // Assigned, not in braces: GCC 12 takes a temporary of these for uninitialised.
    OpenOptions how;
    how.opened = [](const OpenedStore&) {};
    how.shards = GetParam().shards;
    auto store = known_kind_of(url(at))->linked->open(url(at), test_settings(), how);
    if (!store) return std::unexpected(store.error().detail);
    return std::move(*store);
  }

  /// As a kill leaves it, with what its log alone has.
  void make() {
    auto store = open(path("made"));
    ASSERT_TRUE(store) << store.error();
    for (int i = 1; i <= stored_keys; ++i) {
      Reserve verb = a_reserve(i);
      verb.id.bytes[0] = static_cast<std::uint8_t>(i * 11);
      verb.generation = (*store)->identity().generation;
      const auto outcome = ask_and_wait(**store, verb);
      ASSERT_TRUE(outcome && is<Execute>(*outcome));
      ASSERT_TRUE(ask_and_wait(**store, a_complete(std::get<Execute>(*outcome))));
    }
    for (const char* const end : {"", "-wal"}) {
      std::error_code none;
      fs::copy(path("made") + end, path() + end, fs::copy_options::recursive, none);
    }
  }

  std::vector<std::string> files() const {
    std::vector<std::string> all{path()};
    if (fs::is_directory(path())) {
      for (const auto& entry : fs::recursive_directory_iterator(path())) {
        const bool is_index_log = entry.path().filename().string().starts_with("LOG");
        if (!is_index_log) all.push_back(entry.path().string());
      }
    } else {
      all.push_back(path() + "-wal");
    }
    std::ranges::sort(all);
    return all;
  }

  std::vector<FileVerb> verbs() {
    const std::string other = path("other");
    const auto of_file = [](const auto& result) {
      return result ? std::string() : result.error().why;
    };
    return {
        {"start",
         [this] {
           const auto store = open(path());
           return store ? std::string() : store.error();
         }},
        {"check", [this, of_file] { return of_file(kind().check(path(), {})); }},
        {"look",
         [this, of_file] {
           return of_file(kind().look(path(), test_settings(), LookDepth::whole));
         }},
        {"backup", [this, of_file, other] { return of_file(kind().backup(path(), other, {})); }},
        {"restore", [this, of_file,
                     other] { return of_file(kind().restore({.from = path(), .path = other})); }},
    };
  }

  static void expect_of_access(const std::string& why, const std::string& file) {
    EXPECT_TRUE(why.contains("Permission denied")) << why;
    EXPECT_TRUE(why.contains(file)) << why;
    EXPECT_TRUE(why.contains("bring back no copy")) << why;
    for (const char* const wrong :
         {"is damaged", "corrupt", "missing", "not a database", "another process", "no store"}) {
      EXPECT_FALSE(why.contains(wrong)) << why;
    }
  }

  void expect_all_answers() {
    auto store = open(path());
    ASSERT_TRUE(store) << store.error();
    for (int i = 1; i <= stored_keys; ++i) {
      Reserve verb = a_reserve(i, 2);
      verb.id.bytes[0] = static_cast<std::uint8_t>(i * 11);
      verb.generation = (*store)->identity().generation;
      const auto outcome = ask_and_wait(**store, verb);
      ASSERT_TRUE(outcome && is<Replay>(*outcome)) << i;
    }
  }

  TempFolder folder_;
};

// Root has served the store once, or a part of it was brought back by root.
TEST_P(FileAccess, S22_a_wrong_owner_is_no_damage_and_the_printed_command_repairs_it) {
  int cases = 0;
  for (const std::string& file : files()) {
    struct stat before{};
    ASSERT_EQ(::stat(file.c_str(), &before), 0);
    for (const FileVerb& verb : verbs()) {
      SCOPED_TRACE(std::string(verb.name) + " of " + file);
      ASSERT_EQ(::lchown(file.c_str(), 0, 0), 0);
      ASSERT_EQ(::chmod(file.c_str(), S_ISDIR(before.st_mode) ? 0700 : 0600), 0);
      std::string why;
      {
        const AsNobody user;
        why = verb.run();
      }
      expect_of_access(why, file);
      const auto command = why.rfind(": chown ");
      ASSERT_NE(command, why.npos) << why;
      ASSERT_EQ(std::system(why.substr(command + 2).c_str()), 0) << why;
      struct stat after{};
      ASSERT_EQ(::stat(file.c_str(), &after), 0);
      EXPECT_EQ(after.st_uid, other_user);
      EXPECT_FALSE(fs::exists(path("other"))) << "nothing was made of it";
      ++cases;
    }
    ASSERT_EQ(::chmod(file.c_str(), before.st_mode & 07777), 0);
  }
  std::cout << cases << " cases of a wrong owner, " << GetParam().name << "\n";
  EXPECT_GE(cases, 10);
  const AsNobody user;
  expect_all_answers();
}

TEST_P(FileAccess, S22_a_mode_that_keeps_the_owner_out_is_no_damage) {
  for (const std::string& file : files()) {
    struct stat before{};
    ASSERT_EQ(::stat(file.c_str(), &before), 0);
    ASSERT_EQ(::chmod(file.c_str(), 0), 0);
    std::string why;
    {
      const AsNobody user;
      why = verbs().front().run();
    }
    SCOPED_TRACE(file);
    expect_of_access(why, file);
    const auto command = why.rfind(": chmod ");
    ASSERT_NE(command, why.npos) << why;
    ASSERT_EQ(std::system(why.substr(command + 2).c_str()), 0) << why;
  }
  const AsNobody user;
  expect_all_answers();
}

// An administrator looks after a store of another user: to give it away would stop the gateway.
TEST_P(FileAccess, S22_who_may_not_look_is_asked_to_be_the_stores_user) {
  ASSERT_EQ(::chmod(folder_.file("").c_str(), 0755), 0);
  constexpr uid_t daemon = 1;
  ASSERT_EQ(::seteuid(daemon), 0);
  const std::string why = verbs().at(1).run();
  ASSERT_EQ(::seteuid(0), 0);
  const passwd* const owner = ::getpwuid(other_user);
  ASSERT_NE(owner, nullptr);
  EXPECT_TRUE(why.contains(std::string("run this as ") + owner->pw_name)) << why;
  EXPECT_TRUE(why.contains("only if ")) << why;
}

TEST_P(FileAccess, S22_locks_that_cannot_be_had_are_not_those_of_another_process) {
  for (const LockKind lock : {LockKind::whole_file, LockKind::bytes}) {
    std::string why;
    std::string restored;
    bool is_taken = false;
    std::thread([&] {
      is_taken = take_locks_away(lock);
      if (!is_taken) return;
      why = verbs().front().run();
      const auto put = kind().restore({.from = path("made"), .path = path(), .keep_old = true});
      restored = put ? "" : put.error().why;
    }).join();
    if (!is_taken) GTEST_SKIP() << "this machine lets no test refuse system calls";
    const bool takes_none =
        lock == LockKind::whole_file && known_kind_of(url(""))->name == "sqlite";
    if (takes_none) continue;
    EXPECT_TRUE(why.contains("No locks available")) << why;
    EXPECT_TRUE(why.contains("has no locks for this process")) << why;
    EXPECT_FALSE(why.contains("another process owns")) << why;
    EXPECT_TRUE(restored.contains("has no locks for this process")) << restored;
    EXPECT_FALSE(restored.contains("stop the gateway")) << restored;
  }
}

TEST_P(FileAccess, S22_a_link_to_nothing_is_no_place_for_a_new_store) {
  const std::string link = path("link");
  fs::create_symlink(path("not mounted"), link);
  const auto store = open(link);
  ASSERT_FALSE(store);
  const auto looked = kind().look(link, test_settings(), LookDepth::whole);
  ASSERT_FALSE(looked);
  EXPECT_NE(looked.error().kind, StoreFileError::Kind::not_found) << "a start makes none there";
  for (const std::string& why : {store.error(), looked.error().why}) {
    EXPECT_TRUE(why.contains("is a link to " + path("not mounted") + ", where nothing is")) << why;
    EXPECT_TRUE(why.contains("mount the disk")) << why;
  }
  EXPECT_FALSE(fs::exists(path("not mounted")));
}

// A right that is taken away under a store that serves: the record is there, and so is its outcome.
TEST(FileAccessWhileOpen, S04_S22_a_file_that_cannot_be_opened_is_no_damaged_record) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempFolder folder;
  ASSERT_EQ(::chown(folder.file("").c_str(), other_user, other_user), 0);
  const AsNobody user;
  const auto open = [&] {
    auto store = open_log(folder.file("store"), test_settings(),
                          {.sizes = {.segment_bytes = 64UL << 10U,
                                     .cache_bytes = 4UL << 20U,
                                     .buffer_bytes = 128UL << 10U}});
    EXPECT_TRUE(store) << store.error().detail;
    return store ? std::move(*store) : nullptr;
  };
  const auto reserve = [](int number, int token_number) {
    Reserve verb = a_reserve(number, token_number);
    verb.id.bytes[1] = static_cast<std::uint8_t>(number >> 8);
    verb.generation = 1;
    return verb;
  };
  {
    const auto store = open();
    ASSERT_TRUE(store);
    for (int i = 1; i <= 400; ++i) {
      const auto outcome = ask_and_wait(*store, reserve(i, 1));
      ASSERT_TRUE(outcome && is<Execute>(*outcome)) << i;
      const auto run = std::get<Execute>(*outcome);
      ASSERT_TRUE(ask_and_wait(*store, a_complete(run, answer(201, std::string(1'024, 'b')))));
    }
  }
  const auto store = open();
  ASSERT_TRUE(store);
  const std::string file = folder.file("store/records/00000001.records");
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  const auto kept_out = ask_and_wait(*store, reserve(1, 2));
  ASSERT_FALSE(kept_out);
  EXPECT_EQ(kept_out.error().code, StoreError::Code::unavailable) << "it may be asked again";
  EXPECT_TRUE(kept_out.error().detail.contains(file + " cannot be opened: Permission denied"))
      << kept_out.error().detail;
  EXPECT_TRUE(kept_out.error().detail.contains("chmod u+rw " + file)) << kept_out.error().detail;
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const auto outcome = ask_and_wait(*store, reserve(1, 2));
  EXPECT_TRUE(outcome && is<Replay>(*outcome));
}

INSTANTIATE_TEST_SUITE_P(LocalStores, FileAccess,
                         testing::Values(LocalStore{"sqlite", 0}, LocalStore{"embedded", 1},
                                         LocalStore{"embedded", 3}),
                         [](const auto& chosen) {
                           return std::string(chosen.param.name) +
                                  (chosen.param.shards > 1 ? "_sharded" : "");
                         });

}  // namespace
}  // namespace idem::test
