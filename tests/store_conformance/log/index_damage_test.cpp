#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store/log/database.hpp"
#include "store/log/index_options.hpp"
#include "store/log/log_store.hpp"
#include "store/log/look.hpp"
#include "store/log/recover_store.hpp"
#include "store/log/reindex_store.hpp"
#include "store_conformance/log/shards.hpp"

#include <rocksdb/db.h>

#include <cstdlib>
#include <set>

/// Damage to the index: it ends no process that serves, what is derived is made anew, and what is
/// nowhere else is named.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

class LogIndexDamage : public OnLostMedium {
 protected:
  std::string path(const std::string& part = "") const { return folder_.file("idem.store") + part; }

  std::expected<std::unique_ptr<Store>, StoreError> try_open() {
    reindexed_.clear();
    return open_log(path(), test_settings(),
                    {.host = clock.host(),
                     .reindexed = [this](const std::string& what) { reindexed_ = what; }});
  }
  void open() {
    store_.reset();
    auto store = try_open();
    ASSERT_TRUE(store) << store.error().detail;
    store_ = std::move(*store);
  }
  template <class Verb>
  std::expected<typename Verb::Reply, StoreError> try_ask(Verb verb) {
    if constexpr (std::is_same_v<Verb, Reserve>) verb.generation = 1;
    if constexpr (std::is_same_v<Verb, Accept>) verb.as.generation = 1;
    return ask_and_wait(*store_, std::move(verb));
  }
  template <class Verb>
  typename Verb::Reply must(Verb verb) {
    auto reply = try_ask(std::move(verb));
    if (reply) return std::move(*reply);
    ADD_FAILURE() << reply.error().detail;
    return {};
  }
  Execute run(std::uint64_t number) {
    Reserve verb = reserve_of(numbered(number));
    verb.scope = "acme";
    verb.quota = Quota{.active_keys = 10'000};
    const auto outcome = must(std::move(verb));
    EXPECT_TRUE(is<Execute>(outcome)) << describe(outcome);
    return is<Execute>(outcome) ? std::get<Execute>(outcome) : Execute{};
  }

  /// Something in each family, and all of it in RocksDB's files. So many are completed, one moment
  /// each, so one list each.
  void fill(std::uint64_t completed) {
    open();
    for (std::uint64_t number = 1; number <= completed; ++number) {
      clock.advance(1ms);
      must(a_complete(run(number)));
    }
    const Execute lost = run(resolved);
    must(a_mark_unknown(lost));
    clock.advance(lease + 1ms);
    Resolve settles = a_resolve(1, Resolve::As::failed_retryable, lost.attempt.fence, clock.now());
    settles.id = numbered(resolved);
    must(std::move(settles));
    must(a_mark_unknown(run(left_unknown)));
    Accept later = an_accept(1);
    later.as.id = numbered(accepted);
    must(std::move(later));
    must(AppendLine{"j", 0, "a line"});
    store_.reset();
    fs::copy(path(), sound(), fs::copy_options::recursive);
  }
  static constexpr std::uint64_t resolved = 10'001;
  static constexpr std::uint64_t left_unknown = 10'002;
  static constexpr std::uint64_t accepted = 10'003;

  std::string outcome(std::uint64_t number) {
    const auto outcome = try_ask(reserve_of(numbered(number), 2));
    if (!outcome) return outcome.error().detail;
    return is<Replay>(*outcome) ? "replay" : describe(*outcome);
  }
  std::string sound() const { return folder_.file("sound"); }
  void bring_back() {
    store_.reset();
    fs::remove_all(path());
    fs::copy(sound(), path(), fs::copy_options::recursive);
  }
  std::vector<std::string> tables() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(sound() + "/index")) {
      if (file.path().extension() == ".sst") names.push_back(file.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }
  /// RocksDB's, the present one.
  std::string list_of_files() const {
    const std::string line = content_of(path("/index/CURRENT"));
    return path("/index/" + line.substr(0, line.size() - 1));
  }
  static void flip(const std::string& file, std::size_t at) {
    std::string bytes = content_of(file);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    put_content(file, bytes);
  }

  /// All that reads lists, evidence, journals and requests. What fails does so as damaged.
  int use_everything() {
    int failed = 0;
    const auto look_at = [&](const auto& reply) {
      if (reply) return;
      ++failed;
      EXPECT_EQ(reply.error().code, StoreError::Code::damaged) << reply.error().detail;
    };
    look_at(try_ask(Count{}));
    look_at(try_ask(Sweep{100}));
    look_at(try_ask(Reap{100}));
    look_at(try_ask(List{}));
    look_at(try_ask(List{.state = State::unknown}));
    look_at(try_ask(ReadEvidence{numbered(resolved)}));
    look_at(try_ask(ReadLines{"j"}));
    look_at(try_ask(ListJournals{}));
    look_at(try_ask(AppendLine{"j", 1, "another line"}));
    Claim claim;
    claim.token = token(77);
    claim.owner = "worker";
    claim.lease = lease;
    look_at(try_ask(std::move(claim)));
    return failed;
  }
  void expect_replays(std::uint64_t completed) {
    for (const std::uint64_t number : {std::uint64_t{1}, completed / 2, completed}) {
      EXPECT_EQ(outcome(number), "replay") << number;
    }
  }
  void expect_no_key_runs_again(std::uint64_t completed) {
    expect_replays(completed);
    const auto found = try_ask(Find{numbered(left_unknown)});
    EXPECT_TRUE(found && *found && (*found)->state == State::unknown);
  }

  std::string reindexed_;
};

// Every file of the index, damaged at several places, zeroed, cut and gone: a start refuses and
// says what is damaged, or serves, and ends by no damage that it meets.
TEST_F(LogIndexDamage, S22_no_damage_to_the_index_ends_a_process_or_lets_a_key_run_again) {
  constexpr std::uint64_t completed = 30;
  const bool takes_all = std::getenv("IDEM_INDEX_DAMAGES") != nullptr;  // Else every other one.
  fill(completed);
  std::set<std::string> refusals;
  std::set<std::string> repairs;
  int number = 0;
  int cases = 0;
  int failed_while_serving = 0;
  for (const std::string& table : tables()) {
    const std::string whole = content_of(sound() + "/index/" + table);
    const std::size_t size = whole.size();
    ++number;
    for (const std::string kind : {"begin", "middle", "end", "zeroed", "cut", "gone"}) {
      if (++number % 2 == 0 && !takes_all) continue;
      SCOPED_TRACE(table + " " + kind);
      bring_back();
      const std::string file = path("/index/" + table);
      if (kind == "begin") flip(file, 3);
      if (kind == "middle") flip(file, size / 2);
      if (kind == "end") flip(file, size - 20);
      if (kind == "zeroed") put_content(file, std::string(size, '\0'));
      if (kind == "cut") put_content(file, whole.substr(0, size / 2));
      if (kind == "gone") fs::remove(file);
      ++cases;
      const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
      auto store = try_open();
      EXPECT_EQ(judged.has_value(), store.has_value()) << "the look says what the start says";
      const auto report = segments::check_store(path(), {});
      EXPECT_TRUE(store || !report || report->found > 0) << "nor does a check say less";
      if (!store) {
        EXPECT_NE(store.error().detail.find("is damaged"), std::string::npos);
        EXPECT_NE(store.error().detail.find("cannot be read"), std::string::npos)
            << store.error().detail;
        for (const char* const what :
             {"identity and settings", "evidence", "journals", "stored requests"}) {
          if (store.error().detail.find(what) != std::string::npos) refusals.insert(what);
        }
        continue;
      }
      if (!reindexed_.empty()) repairs.insert(reindexed_);
      store_ = std::move(*store);
      const int failed = use_everything();
      failed_while_serving += failed;
      expect_no_key_runs_again(completed);
      store_.reset();
      // What was met is known to the next start.
      auto again = try_open();
      if (!again) {
        EXPECT_NE(again.error().detail.find("cannot be read"), std::string::npos)
            << again.error().detail;
      } else {
        EXPECT_EQ(failed, 0) << "what failed is nowhere else";
        store_ = std::move(*again);
        EXPECT_EQ(use_everything(), 0);
        expect_no_key_runs_again(completed);
      }
    }
  }
  EXPECT_GE(cases, 8 * (takes_all ? 6 : 3));
  fmt::print("cases={}\n", cases);
  EXPECT_GT(failed_while_serving, 0);
  EXPECT_EQ(refusals.size(), 4U);
  EXPECT_EQ(repairs.size(), 4U);
}

// RocksDB itself opens the first sixteen alone when it starts, and each of them when it looks.
TEST_F(LogIndexDamage, S22_a_start_looks_at_the_end_of_each_of_many_files) {
  fill(5);
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    open();
    must(a_complete(run(20'000 + turn)));
    must(AppendLine{"j", turn, "another line"});
    store_.reset();
  }
  fs::remove_all(sound());
  fs::copy(path(), sound(), fs::copy_options::recursive);
  const auto files = tables();
  ASSERT_GT(files.size(), 16U);
  int recoveries = 0;
  for (const std::string& table : files) {
    SCOPED_TRACE(table);
    bring_back();
    const std::string file = path("/index/" + table);
    const std::string whole = content_of(file);
    // The last is as if another file had its name.
    const auto place = std::ranges::find(files, table) - files.begin();
    if (place % 3 == 0) put_content(file, whole.substr(0, whole.size() - 20));
    if (place % 3 == 1) put_content(file, whole + std::string(20, 'x'));
    if (place % 3 == 2) put_content(file, "x" + whole);
    const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
    const auto store = try_open();
    ASSERT_EQ(judged.has_value(), store.has_value())
        << (store ? judged.error().why : store.error().detail);
    if (store) continue;
    EXPECT_NE(store.error().detail.find(table), std::string::npos) << store.error().detail;
    EXPECT_EQ(store.error().detail, judged.error().why);
    // As the sentence says.
    const std::string made = folder_.file("made");
    fs::remove_all(made);
    const bool can_recover = store.error().detail.contains("idem store recover");
    const auto recovered = segments::recover_store({.from = path(), .to = made});
    ASSERT_EQ(recovered.has_value(), can_recover) << (recovered ? "" : recovered.error().why);
    recoveries += can_recover ? 1 : 0;
    if (!can_recover) continue;
    EXPECT_EQ(recovered->notes.size(), 1U);
    fs::remove_all(path());
    fs::rename(made, path());
    open();
    expect_no_key_runs_again(5);
  }
  EXPECT_GT(recoveries, 0);
}

// A start does not read so far: the reaper meets it, and the others go on.
TEST_F(LogIndexDamage, S22_a_damaged_list_far_on_fails_the_reaper_alone_and_is_made_anew) {
  constexpr std::uint64_t completed = 700;
  fill(completed);
  // By far the largest are those of what is due. A cursor begins in each file, so not its
  // beginning.
  const auto size_of = [&](const std::string& table) {
    return fs::file_size(path("/index/" + table));
  };
  const std::string file = path("/index/" + std::ranges::max(tables(), {}, size_of));
  for (const std::size_t eighths : {5U, 6U, 4U}) {
    bring_back();
    flip(file, fs::file_size(file) / 8 * eighths);
    open();
    if (reindexed_.empty()) break;  // Else that lay in what a start reads.
  }
  EXPECT_EQ(reindexed_, "");
  expect_no_key_runs_again(completed);
  clock.advance(retention + 1h);
  std::size_t reaped = 0;
  std::optional<StoreError> error;
  for (int i = 0; i < 100 && !error; ++i) {
    const auto steps = try_ask(Reap{100});
    if (steps) reaped += steps->size();
    if (!steps) error = steps.error();
    if (steps && steps->empty()) break;
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, StoreError::Code::damaged);
  EXPECT_NE(error->detail.find("the next start makes them anew"), std::string::npos)
      << error->detail;
  EXPECT_LT(reaped, completed);
  must(a_complete(run(20'000)));
  open();
  EXPECT_EQ(reindexed_, "lists of what is due");
  for (;;) {
    const auto steps = must(Reap{100});
    if (steps.empty()) break;
    reaped += steps.size();
  }
  EXPECT_GE(reaped, completed);
  store_.reset();
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                              << report->findings.front().what;
}

TEST_F(LogIndexDamage, a_reindex_makes_what_was_there) {
  constexpr std::uint64_t completed = 100;
  fill(completed);
  open();
  const auto before = must(Count{});
  const auto unknown = must(List{.state = State::unknown});
  store_.reset();
  const auto done = segments::reindex_store(path(), {});
  ASSERT_TRUE(done) << done.error().why;
  EXPECT_EQ(*done, completed + 3);
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                              << report->findings.front().what;
  open();
  EXPECT_EQ(must(Count{}).by_state, before.by_state);
  EXPECT_EQ(must(List{.state = State::unknown}).size(), unknown.size());
  // As many active keys as before: that of the accepted request does not count.
  Reserve verb = reserve_of(numbered(30'000));
  verb.scope = "acme";
  verb.quota = Quota{.active_keys = completed + 2};
  EXPECT_TRUE(is<QuotaExceeded>(must(verb)));
  verb.quota = Quota{.active_keys = completed + 3};
  EXPECT_TRUE(is<Execute>(must(verb)));
  EXPECT_FALSE(segments::reindex_store(path(), {})) << "a process has it";
}

// Killed wherever it is: frames of before name families that are gone by then.
TEST_F(LogIndexDamage, T16_a_store_that_was_killed_after_a_reindex_is_whole) {
  constexpr std::uint64_t completed = 30;
  fill(completed);
  ASSERT_TRUE(segments::reindex_store(path(), {}));
  open();
  must(a_complete(run(20'000)));
  const std::string left = folder_.file("left");
  fs::copy(path(), left, fs::copy_options::recursive);
  store_.reset();
  fs::remove_all(path());
  fs::rename(left, path());
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                              << report->findings.front().what;
  open();
  expect_no_key_runs_again(completed);
  EXPECT_EQ(outcome(20'000), "replay");
  const std::string backup = folder_.file("backup");
  const auto copied = segments::back_up_store(path(), backup, {});
  ASSERT_TRUE(copied) << copied.error().why;
  EXPECT_EQ(copied->found, 0);
}

enum class CutOff : std::uint8_t { after_the_drop, within_the_making };

/// Leaves what a process leaves that is killed while it makes a family anew.
void cut_a_repair_off(const std::string& path, CutOff where) {
  const LogSizes sizes;
  {
    segments::RunningSection running;
    const auto db = segments::Database::open({.path = path}, running);
    ASSERT_TRUE(db) << db.error().detail;
    (*db)->note_damage(segments::derived_families);
    segments::Families first;
    first.add(segments::Family::usage);
    ASSERT_TRUE((*db)->renew(first));
  }
  std::vector<::rocksdb::ColumnFamilyHandle*> handles;
  const auto families = segments::index_families(sizes);
  ::rocksdb::DB* opened = nullptr;
  const auto status = ::rocksdb::DB::Open(segments::index_options(sizes), segments::index_of(path),
                                          families, &handles, &opened);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const std::unique_ptr<::rocksdb::DB> index(opened);
  constexpr auto due = static_cast<std::size_t>(segments::Family::due);
  ASSERT_TRUE(index->DropColumnFamily(handles[due]).ok());
  ASSERT_TRUE(index->DestroyColumnFamilyHandle(handles[due]).ok());
  if (where == CutOff::within_the_making) {
    ASSERT_TRUE(
        index->CreateColumnFamily(families[due].options, families[due].name, &handles[due]).ok());
  }
  for (auto* const one : handles) {
    const bool is_gone = one == handles[due] && where == CutOff::after_the_drop;
    if (is_gone) continue;
    ASSERT_TRUE(index->DestroyColumnFamilyHandle(one).ok());
  }
}

TEST_F(LogIndexDamage, T16_a_repair_that_is_cut_off_is_one_to_a_look_and_to_a_start) {
  constexpr std::uint64_t completed = 30;
  fill(completed);
  for (const auto where : {CutOff::after_the_drop, CutOff::within_the_making}) {
    SCOPED_TRACE(static_cast<int>(where));
    bring_back();
    cut_a_repair_off(path(), where);
    if (where == CutOff::within_the_making) {
      const std::string list = list_of_files();
      flip(list, fs::file_size(list) - 3);
    }
    const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
    EXPECT_TRUE(judged) << judged.error().why;
    const auto report = segments::check_store(path(), {});
    ASSERT_TRUE(report) << report.error().why;
    EXPECT_GT(report->found, 0);
    const std::string backup = folder_.file("backup " + std::to_string(static_cast<int>(where)));
    const auto copied = segments::back_up_store(path(), backup, {});
    EXPECT_TRUE(copied) << copied.error().why;
    open();
    EXPECT_NE(reindexed_.find("lists of what is due"), std::string::npos) << reindexed_;
    EXPECT_EQ(use_everything(), 0);
    expect_no_key_runs_again(completed);
    store_.reset();
    const auto again = segments::check_store(path(), {});
    ASSERT_TRUE(again) << again.error().why;
    EXPECT_EQ(again->found, 0);
  }
}

// Cut after any of its records, as no crash leaves it: what a start refuses it leaves as it is, and
// a look says the same.
TEST_F(LogIndexDamage, T01_a_list_of_files_that_is_cut_cleanly_deletes_no_file_of_a_refused_store) {
  constexpr std::uint64_t completed = 40;
  fill(completed);
  ASSERT_TRUE(segments::reindex_store(path(), {}));
  fs::remove_all(sound());
  fs::copy(path(), sound(), fs::copy_options::recursive);
  const auto files = tables();
  const std::string list = list_of_files();
  const std::string whole = content_of(list);
  int refused = 0;
  std::size_t at = 0;
  while (at + 7 < whole.size()) {
    at += 7 + (static_cast<unsigned char>(whole[at + 4]) |
               static_cast<std::size_t>(static_cast<unsigned char>(whole[at + 5])) << 8U);
    SCOPED_TRACE(at);
    bring_back();
    put_content(list, whole.substr(0, at));
    const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
    auto store = try_open();
    EXPECT_EQ(judged.has_value(), store.has_value())
        << (store ? judged.error().why : store.error().detail);
    if (store) {
      store_ = std::move(*store);
      expect_no_key_runs_again(completed);
      continue;
    }
    ++refused;
    for (const std::string& file : files) EXPECT_TRUE(fs::exists(path("/index/" + file))) << file;
    put_content(list, whole);
    open();
    expect_no_key_runs_again(completed);
  }
  EXPECT_EQ(at, whole.size());
  EXPECT_GT(refused, 0);
}

// RocksDB deletes the files that an older list does not name as soon as it opens the index for
// writing; the stored requests in them are nowhere else.
TEST_F(LogIndexDamage, T01_an_older_list_of_files_is_refused_before_a_file_is_deleted) {
  constexpr std::uint64_t completed = 400;
  const auto start = [&] {
    return open_log(
        path(), test_settings(),
        {.host = clock.host(),
         .sizes = {
             .segment_bytes = 8UL << 10U, .cache_bytes = 1UL << 20U, .buffer_bytes = 16UL << 10U}});
  };
  store_ = std::move(*start());
  Accept later = an_accept(1);
  later.as.id = numbered(accepted);
  must(std::move(later));
  store_.reset();
  store_ = std::move(*start());
  const std::string current = content_of(path("/index/CURRENT"));
  const std::string list = list_of_files();
  const std::string older = content_of(list);
  for (std::uint64_t number = 1; number <= completed; ++number) must(a_complete(run(number)));
  store_.reset();
  ASSERT_FALSE(fs::exists(path("/commits/00000001.commits")));
  fs::copy(path(), sound(), fs::copy_options::recursive);
  const auto files = tables();

  put_content(path("/index/CURRENT"), current);
  put_content(list, older);
  const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
  const auto refused = start();
  ASSERT_FALSE(judged);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, judged.error().why);
  EXPECT_NE(refused.error().detail.find("is damaged"), std::string::npos) << refused.error().detail;
  for (const std::string& file : files) EXPECT_TRUE(fs::exists(path("/index/" + file))) << file;

  bring_back();
  store_ = std::move(*start());
  expect_replays(completed);
}

}  // namespace
}  // namespace idem::test
