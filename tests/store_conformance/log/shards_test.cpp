#include "store_conformance/log/shards.hpp"
#include "store/embedded/shard_of.hpp"
#include "store/log/backup_store.hpp"
#include "store/log/shards.hpp"

/// Stores with several shards, alone and over starts (see also kill_test.cpp,
/// differential_test.cpp, shards_at_once_test.cpp).
namespace idem::test {
namespace {

namespace fs = std::filesystem;

TEST_F(Shards, records_are_spread_and_found_again) {
  open(4);
  EXPECT_EQ(folders(), 4);
  complete_many(0, 400);
  std::array<std::uint64_t, 4> in_shard{};
  for (std::uint64_t number = 0; number < 400; ++number) {
    ++in_shard[embedded::shard_of(numbered(number), 4)];
  }
  for (const std::uint64_t count : in_shard) EXPECT_GT(count, 60U);
  expect_answers(0, 400);
  expect_sound();
  open(0);
  EXPECT_EQ(folders(), 4) << "as the store has them";
  EXPECT_FALSE(moved_);
  expect_answers(0, 400);
  EXPECT_EQ(ask(Count{}).by_state[static_cast<std::size_t>(State::completed)], 400U);
}

TEST_F(Shards, a_start_with_another_number_moves_what_belongs_elsewhere) {
  open(1);
  complete_many(0, 300);
  const Execute runs = run(1'000);
  ask(a_mark_unknown(run(1'001)));
  Accept accept = an_accept(1, "POST / later");
  accept.as.id = numbered(1'002);
  accept.as.generation = 1;
  ask(accept);
  for (const std::uint32_t shards : {4U, 3U, 2U, 1U, 3U}) {
    open(shards);
    ASSERT_TRUE(moved_);
    EXPECT_GT(*moved_, 50U);
    EXPECT_EQ(folders(), static_cast<int>(shards));
    expect_answers(0, 300);
    EXPECT_TRUE(is<InProgress>(ask(reserve_of(numbered(1'000), 2))));
    EXPECT_TRUE(is<Unknown>(ask(reserve_of(numbered(1'001), 2))));
    EXPECT_TRUE(is<Pending>(ask(reserve_of(numbered(1'002), 2))));
    const Census census = ask(Count{});
    EXPECT_EQ(census.by_state[static_cast<std::size_t>(State::completed)], 300U);
    EXPECT_EQ(census.by_state[static_cast<std::size_t>(State::in_progress)], 1U);
    store_.reset();
    expect_sound();
  }
  open(3);
  Complete late = a_complete(runs);
  EXPECT_EQ(ask(late).verdict, Verdict::done) << "the owner's attempt was moved as it is";
  const auto claimed = ask(Claim{token(9), "x", lease, true});
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->request, "POST / later");
}

// Format 2: a program from before shards refuses the store, and so looks for no key in one of them.
TEST_F(Shards, T01_a_store_of_several_has_a_format_of_its_own) {
  const auto format = [&](const std::string& of) { return content_of(of + "/commits/format")[8]; };
  open(1);
  complete_many(0, 10);
  EXPECT_EQ(format(path()), 2);
  open(2);
  EXPECT_EQ(format(path()), 3);
  expect_answers(0, 10);
  ASSERT_TRUE(segments::back_up_store(path(), folder_.file("backup"), {}));
  EXPECT_EQ(format(folder_.file("backup")), 3);
  open(0);
  EXPECT_EQ(format(path()), 3);
  expect_answers(0, 10);
}

TEST_F(Shards, evidence_moves_also_where_its_record_is_gone) {
  open(1);
  std::vector<std::vector<EvidenceEntry>> before;
  for (std::uint64_t number = 0; number < 20; ++number) {
    ask(a_mark_unknown(run(number)));
    for (int i = 0; i < 3; ++i) {
      Resolve verb = a_resolve(1, Resolve::As::completed, 999);
      verb.id = numbered(number);
      verb.reason = std::to_string(i);
      ask(verb);
    }
    before.push_back(ask(ReadEvidence{numbered(number)}));
    ASSERT_EQ(before.back().size(), 3U);
  }
  Resolve of_none = a_resolve(1, Resolve::As::completed, 999);
  of_none.id = numbered(77);
  ask(of_none);
  for (const std::uint32_t shards : {4U, 2U, 3U}) {
    open(shards);
    for (std::uint64_t number = 0; number < 20; ++number) {
      EXPECT_EQ(ask(ReadEvidence{numbered(number)}), before[number]) << number;
    }
    EXPECT_EQ(ask(ReadEvidence{numbered(77)}).size(), 1U);
  }
}

TEST_F(Shards, T01_without_the_folder_of_a_shard_nothing_is_opened) {
  open(3);
  complete_many(0, 30);
  store_.reset();
  fs::rename(path("/shards/02"), path("/away"));
  EXPECT_NE(refusal(0).find("shard 2 of its records is missing"), std::string::npos) << refusal(0);
  EXPECT_NE(refusal(2).find("shard 2"), std::string::npos) << "not with fewer either";
  EXPECT_FALSE(segments::check_store(path(), {}));
  fs::rename(path("/shards/01"), path("/shards/02"));
  fs::rename(path("/away"), path("/shards/01"));
  EXPECT_NE(refusal(0).find("is not shard 1 of this store"), std::string::npos) << refusal(0);
  EXPECT_FALSE(segments::check_store(path(), {}));
  fs::rename(path("/shards/01"), path("/away"));
  fs::rename(path("/shards/02"), path("/shards/01"));
  fs::rename(path("/away"), path("/shards/02"));
  open(0);
  expect_answers(0, 30);
}

TEST_F(Shards, T01_a_shard_of_another_store_is_refused) {
  open(2);
  complete_many(0, 30);
  store_.reset();
  fs::rename(path(), path(".mine"));
  open(2);
  store_.reset();
  fs::rename(path("/shards/01"), path(".mine/shards/other"));
  fs::remove_all(path());
  fs::rename(path(".mine"), path());
  fs::rename(path("/shards/01"), path(".kept"));
  fs::rename(path("/shards/other"), path("/shards/01"));
  EXPECT_NE(refusal(0).find("is not shard 1 of this store"), std::string::npos) << refusal(0);
  const auto report = segments::check_store(path(), {});
  EXPECT_TRUE(!report || report->found > 0);
}

TEST_F(Shards, a_shard_alone_is_no_store) {
  open(2);
  store_.reset();
  const auto opened = open_log(path("/shards/01"), test_settings(), {.host = clock.host()});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().detail.find("is shard 1 of a store"), std::string::npos)
      << opened.error().detail;
  EXPECT_FALSE(segments::check_store(path("/shards/01"), {}));
}

// Its key would be looked for in another shard, and run again.
TEST_F(Shards, T01_what_cannot_be_read_is_not_moved_and_the_number_stays) {
  open(1);
  complete_many(0, 200);
  store_.reset();
  std::string file = path("/records/00000001.records");
  ASSERT_TRUE(fs::exists(file));
  std::string bytes = content_of(file);
  // In the middle of the first version of a record that would have to move.
  std::size_t at = std::string::npos;
  for (std::uint64_t number = 0; at == std::string::npos; ++number) {
    if (embedded::shard_of(numbered(number), 2) == 0) continue;
    const auto id = numbered(number).bytes;
    at = bytes.find(std::string_view(reinterpret_cast<const char*>(id.data()), id.size()));
    ASSERT_LT(number, 200U);
  }
  bytes[at + 40] = static_cast<char>(bytes[at + 40] ^ 0x55);
  put_content(file, bytes);
  EXPECT_NE(refusal(2).find("cannot be moved"), std::string::npos) << refusal(2);
  EXPECT_EQ(folders(), 1);
  open(0);
  EXPECT_EQ(ask(Count{}).by_state[static_cast<std::size_t>(State::completed)], 200U);
}

// As when the process was killed between the commits of two shards.
TEST_F(Shards, S02_a_shard_that_missed_a_new_table_gets_it_at_the_start) {
  const std::vector<RouteName> pay{{{"POST"}, "/v1/payments", "pay", {}}};
  const std::vector<RouteName> charge{{{"POST"}, "/v1/payments", "charge", {}}};
  for (const bool is_first_behind : {false, true}) {
    SCOPED_TRACE(is_first_behind);
    fs::remove_all(path());
    open(3);
    const auto before = ask(AdoptRoutes{pay});
    keep(is_first_behind ? first_shard : second_shard);
    const auto after = ask(AdoptRoutes{charge});
    ASSERT_EQ(after.generation, before.generation + 1);
    store_.reset();
    bring_back(is_first_behind ? first_shard : second_shard);
    open(0);
    const std::uint64_t present = is_first_behind ? before.generation : after.generation;
    for (std::uint64_t number = 0; number < 20; ++number) {
      for (const std::uint64_t generation : {before.generation, after.generation}) {
        Reserve verb = reserve_of(numbered(number));
        verb.generation = generation;
        EXPECT_EQ(ask_and_wait(*store_, verb).has_value(), generation == present);
      }
    }
    EXPECT_EQ(ask(AdoptRoutes{is_first_behind ? pay : charge}).generation, present);
    store_.reset();
  }
}

TEST_F(Shards, T01_a_shard_from_before_the_last_start_is_refused) {
  for (const Parts& older : {first_shard, second_shard}) {
    SCOPED_TRACE(older.front());
    fs::remove_all(path());
    open(3);
    complete_many(0, 30);
    store_.reset();
    keep(older);
    open(0);
    complete_many(30, 60);
    store_.reset();
    bring_back(older);
    EXPECT_NE(refusal(0).find("an older copy"), std::string::npos) << refusal(0);
    EXPECT_NE(refusal(1).find("an older copy"), std::string::npos) << refusal(1);
    EXPECT_FALSE(segments::check_store(path(), {}));
    EXPECT_FALSE(segments::back_up_store(path(), folder_.file("copy"), {}));
  }
}

// Some shards have the mark that a start drew and did not bring to all: another start that is cut
// off must not draw a third one.
TEST_F(Shards, a_start_goes_on_with_the_mark_of_one_that_was_cut_off) {
  open(3);
  complete_many(0, 30);
  store_.reset();
  constexpr std::uint64_t drawn = 777;
  const auto mark_of = [&](std::uint32_t shard, std::optional<segments::StartMark> next) {
    segments::RunningSection running;
    auto db = segments::Database::open({.path = segments::folder_of_shard(path(), shard)}, running);
    EXPECT_TRUE(db) << db.error().detail;
    segments::Meta meta(**db);
    const auto mark = segments::read_start_mark(meta).value();
    if (next) segments::write_start_mark(meta, *next);
    if (next) (*db)->commit();
    return mark;
  };
  const auto first = mark_of(0, std::nullopt);
  EXPECT_NE(first.present, 0U);
  mark_of(0, segments::StartMark{first.present, drawn});
  mark_of(2, segments::StartMark{drawn, drawn});
  open(0);
  expect_answers(0, 30);
  store_.reset();
  for (const std::uint32_t shard : {0U, 1U, 2U}) {
    EXPECT_EQ(mark_of(shard, std::nullopt).present, drawn) << shard;
  }
}

// One name's record ends between the look and the reserve; the other one's does not.
TEST_F(Shards, T01_a_reserve_looks_again_where_the_record_that_counted_has_ended) {
  const auto readings_before = std::make_shared<std::atomic<int>>(1 << 30);
  HostClock host = clock.host();
  host.uptime = [readings_before, uptime = host.uptime] {
    return uptime() + ((*readings_before)-- > 0 ? Millis(0) : Millis(2s));
  };
  RecordId names[2] = {numbered(1), numbered(2)};
  for (std::uint64_t number = 3; embedded::shard_of(names[0], 4) == embedded::shard_of(names[1], 4);
       ++number) {
    names[1] = numbered(number);
  }
  auto store = open_log(path(), test_settings(), {.host = host, .shards = 4});
  ASSERT_TRUE(store) << store.error().detail;
  store_ = std::move(*store);
  for (const int name : {0, 1}) {
    Reserve verb = reserve_of(names[name]);
    verb.retention = name == 0 ? Millis(1s) : Millis(1h);
    verb.tombstone = Millis(0);
    const auto outcome = ask(verb);
    ASSERT_TRUE(is<Execute>(outcome));
    ask(a_complete(std::get<Execute>(outcome)));
  }
  Reserve other = reserve_of(names[0], 2);
  other.fingerprints = {body(99)};
  other.also = {{names[1], {}}};
  *readings_before = 2;  // Each shard's look is one transaction.
  const auto outcome = ask(other);
  EXPECT_TRUE(is<KeyMisuse>(outcome)) << describe(outcome);
  EXPECT_LT(*readings_before, 0) << "the clock went on in between";
}

TEST_F(Shards, T01_a_shard_from_a_backup_is_refused) {
  open(3);
  complete_many(0, 30);
  const std::string backup = folder_.file("backup");
  ASSERT_TRUE(segments::back_up_store(path(), backup, {}));
  complete_many(30, 60);
  store_.reset();
  fs::remove_all(path("/shards/01"));
  fs::copy(backup + "/shards/01", path("/shards/01"), fs::copy_options::recursive);
  EXPECT_NE(refusal(0).find("an older copy"), std::string::npos) << refusal(0);
}

// Each shard of a backup has one run of this number.
TEST_F(Shards, T01_the_ids_of_one_shard_do_not_stand_for_anothers) {
  open(3);
  complete_many(0, 60);
  const std::string backup = folder_.file("backup");
  ASSERT_TRUE(segments::back_up_store(path(), backup, {}));
  store_.reset();
  fs::remove_all(path());
  fs::rename(backup, path());
  const auto run_of = [&](const char* shard) { return path(shard) + "/ids/00000001.ids"; };
  fs::rename(run_of("/shards/01"), path("/kept"));
  fs::rename(run_of("/shards/02"), run_of("/shards/01"));
  fs::rename(path("/kept"), run_of("/shards/02"));
  EXPECT_NE(refusal(0).find("is another table's"), std::string::npos) << refusal(0);
  EXPECT_FALSE(segments::check_store(path(), {}));
}

// Killed before anything is written behind the move: the note of the shard that is gone counts.
TEST_F(Shards, S02_fences_grow_where_the_shard_with_the_highest_is_gone) {
  open(4);
  Fence highest = 0;
  for (std::uint64_t number = 0; number < 40; ++number) {
    if (number < 30 || embedded::shard_of(numbered(number), 4) == 3) {
      highest = run(number).attempt.fence;
    }
  }
  store_.reset();
  open(2);
  keep({"/commits", "/records", "/ids", "/index", "/mark", "/shards/01"});
  store_.reset();
  bring_back({"/commits", "/records", "/ids", "/index", "/mark", "/shards/01"});
  open(0);
  EXPECT_GT(run(1'000).attempt.fence, highest);
}

// The first shard is from when it was the only one.
TEST_F(Shards, T01_a_folder_with_records_that_nobody_counts_is_not_deleted) {
  open(1);
  complete_many(0, 30);
  store_.reset();
  keep(first_shard);
  open(2);
  complete_many(30, 60);
  store_.reset();
  bring_back(first_shard);
  for (const std::uint32_t shards : {0U, 1U, 2U, 3U}) {
    EXPECT_NE(refusal(shards).find("has records in shards/01"), std::string::npos)
        << refusal(shards);
  }
  EXPECT_EQ(folders(), 2);
}

TEST_F(Shards, what_a_start_that_was_cut_off_left_is_cleared) {
  open(1);
  complete_many(0, 30);
  store_.reset();
  fs::create_directories(path("/shards/02.gone/index"));
  fs::create_directories(path("/shards/07"));
  put_content(path("/shards/07/notes.txt"), "not Idem's");
  const std::string other = folder_.file("other");
  ASSERT_TRUE(open_log(other, test_settings(), {.host = clock.host()}));
  fs::rename(other, path("/shards/01"));
  open(0);
  EXPECT_EQ(folders(), 2);
  EXPECT_EQ(content_of(path("/shards/07/notes.txt")), "not Idem's");
  fs::remove_all(path("/shards/07"));
  expect_answers(0, 30);
  fs::create_directories(path("/shards/01"));
  put_content(path("/shards/01/unfinished"), "");
  open(2);
  EXPECT_EQ(folders(), 2);
  expect_answers(0, 30);
}

TEST_F(Shards, a_backup_has_all_shards_and_a_restore_brings_them_back) {
  open(3);
  complete_many(0, 200);
  const Execute running = run(500);
  const std::string backup = folder_.file("backup");
  const auto copied = segments::back_up_store(path(), backup, {});
  ASSERT_TRUE(copied) << copied.error().why;
  EXPECT_EQ(copied->found, 0);
  EXPECT_EQ(copied->by_state[static_cast<std::size_t>(State::completed)], 200U);
  complete_many(200, 220);
  store_.reset();
  const auto restored = segments::restore_store({.from = backup, .path = path(), .keep_old = true});
  ASSERT_TRUE(restored) << restored.error().why;
  EXPECT_EQ(restored->unknown, 1U);
  open(0);
  EXPECT_EQ(folders(), 3);
  expect_answers(0, 200);
  EXPECT_TRUE(is<Unknown>(ask(reserve_of(numbered(500), 2))));
  EXPECT_GT(run(600).attempt.fence, running.attempt.fence + 1'000'000) << "the gap of a restore";
  store_.reset();
  expect_sound();
}

}  // namespace
}  // namespace idem::test
