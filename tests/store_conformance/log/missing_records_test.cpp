#include "store/log/check_store.hpp"
#include "store/log/log_store.hpp"
#include "store/log/look.hpp"
#include "store/log/recover_store.hpp"
#include "store_conformance/harness.hpp"
#include "store_conformance/log/runs.hpp"

/// A file of versions that is gone: nobody makes it anew, and a recovery keeps the others.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

constexpr int made_keys = 120;
constexpr std::size_t made_body_bytes = 4'096;

class LogMissingRecords : public testing::Test {
 protected:
  std::string path(const std::string& part = "") const { return folder_.file("idem.store") + part; }

  static std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& at) {
    return open_log(at, test_settings(),
                    {.sizes = {.segment_bytes = 64UL << 10U,
                               .cache_bytes = 4UL << 20U,
                               .buffer_bytes = 128UL << 10U}});
  }
  static Reserve reserve(const Store& store, int number, int token_number) {
    Reserve verb = a_reserve(number, token_number);
    verb.generation = store.identity().generation;
    return verb;
  }

  /// Several files of versions, of which the log has the first ones no more.
  void make() {
    const auto store = open(path());
    ASSERT_TRUE(store) << store.error().detail;
    for (int number = 1; number <= made_keys; ++number) {
      const auto outcome = ask_and_wait(**store, reserve(**store, number, 1));
      ASSERT_TRUE(outcome && is<Execute>(*outcome)) << number;
      ASSERT_TRUE(ask_and_wait(
          **store,
          a_complete(std::get<Execute>(*outcome), answer(201, std::string(made_body_bytes, 'b')))));
    }
  }
  static bool is_replayed(Store& store, int number) {
    const auto outcome = ask_and_wait(store, reserve(store, number, 2));
    return outcome && is<Replay>(*outcome);
  }

  TempFolder folder_;
};

TEST_F(LogMissingRecords, S22_all_refuse_the_store_and_a_recovery_says_that_keys_are_lost) {
  make();
  const std::string first = path("/records/00000001.records");
  ASSERT_TRUE(fs::exists(first));
  fs::rename(first, folder_.file("kept"));
  for (int start = 1; start <= 2; ++start) {
    const auto store = open(path());
    ASSERT_FALSE(store) << "start " << start;
    EXPECT_TRUE(store.error().detail.contains(first + " of its records is missing"))
        << store.error().detail;
    const auto looked = segments::identify_store(path(), test_settings(), LookDepth::whole);
    ASSERT_FALSE(looked);
    EXPECT_EQ(looked.error().why, store.error().detail);
    const auto checked = segments::check_store(path(), {});
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().why, store.error().detail);
    EXPECT_FALSE(fs::exists(first)) << "it is not made anew";
  }
  const std::string to = folder_.file("recovered");
  const auto recovered = segments::recover_store({.from = path(), .to = to});
  ASSERT_TRUE(recovered) << recovered.error().why;
  EXPECT_TRUE(recovered->lacks_keys);
  EXPECT_FALSE(recovered->lacks_from) << "of any time";
  const auto again = segments::recover_store({.from = to, .to = folder_.file("again")});
  ASSERT_TRUE(again) << again.error().why;
  EXPECT_TRUE(again->lacks_keys && !again->lacks_from && !again->made.copied_at);
  {
    const auto store = open(to);
    ASSERT_TRUE(store) << store.error().detail;
    EXPECT_TRUE(is_replayed(**store, made_keys));
  }
  fs::rename(folder_.file("kept"), first);
  const auto store = open(path());
  ASSERT_TRUE(store) << store.error().detail;
  for (int number = 1; number <= made_keys; ++number) {
    EXPECT_TRUE(is_replayed(**store, number)) << number;
  }
}

TEST_F(LogMissingRecords, S22_a_recovery_needs_no_ids_unless_records_are_gone_as_well) {
  make();
  const std::string list = path("/ids/runs");
  put_content(list, "x" + content_of(list));
  const auto store = open(path());
  ASSERT_FALSE(store);
  EXPECT_TRUE(store.error().detail.contains("idem store recover")) << store.error().detail;
  const std::string to = folder_.file("recovered");
  const auto recovered = segments::recover_store({.from = path(), .to = to});
  ASSERT_TRUE(recovered) << recovered.error().why;
  EXPECT_FALSE(recovered->lacks_keys);
  {
    const auto made = open(to);
    ASSERT_TRUE(made) << made.error().detail;
    for (int number = 1; number <= made_keys; ++number) EXPECT_TRUE(is_replayed(**made, number));
  }
  fs::remove(path("/records/00000001.records"));
  const auto less = segments::recover_store({.from = path(), .to = folder_.file("less")});
  ASSERT_TRUE(less) << less.error().why;
  EXPECT_TRUE(less->lacks_keys);
}

}  // namespace
}  // namespace idem::test
