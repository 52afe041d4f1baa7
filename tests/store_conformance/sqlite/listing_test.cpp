#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"

#include <idem/limits.hpp>

#include <latch>

/// A listing of the embedded store goes on between the calls of others.
namespace idem::test {
namespace {

/// Asks for a listing, and meanwhile for one record after another, each from the answer to the one
/// before, and counts those.
class Meanwhile {
 public:
  explicit Meanwhile(Store& store) : store_(store) {}

  /// From an answer, so that the next question is there before the listing looks at its first row.
  std::size_t answered_while_listing() {
    idem::ask(store_, Find{key(1)}, [this](const auto&) {
      idem::ask(store_, List{.scope = "nobody", .limit = 10},
                [this](const auto&) { over_ = true; });
      go_on();
    });
    finished_.wait();
    return answered_;
  }

 private:
  void go_on() {
    if (over_) return finished_.count_down();
    idem::ask(store_, Find{key(1)}, [this](const auto&) {
      if (!over_) ++answered_;
      go_on();
    });
  }

  Store& store_;
  bool over_ = false;  // Of the store's thread, as the count is.
  std::size_t answered_ = 0;
  std::latch finished_{1};
};

TEST(SqliteListing, lets_others_have_their_turn_after_each_few_rows) {
  static_assert(limits::list_slice_rows <= 256, "a commit must not wait for more");
  constexpr int count = 1'000;
  const TestClock clock;
  const TempFolder folder;
  const auto store = open_sqlite(folder.file("idem.db"), test_settings(), {.host = clock.host()});
  ASSERT_TRUE(store);
  for (int first = 0; first < count; first += 100) {
    std::latch settled(100);
    for (int number = first; number < first + 100; ++number) {
      Reserve reserve = a_reserve(number);
      reserve.id.bytes[1] = static_cast<std::uint8_t>(number >> 8);
      reserve.generation = (*store)->identity().generation;
      Complete complete{reserve.id, {std::nullopt, reserve.token}, answer(), {}};
      (*store)->call(std::move(reserve), [](auto) {});
      (*store)->call(std::move(complete), [&](auto) { settled.count_down(); });
    }
    settled.wait();
  }
  EXPECT_GE(Meanwhile(**store).answered_while_listing(), count / limits::list_slice_rows)
      << "one between each two slices";
}

}  // namespace
}  // namespace idem::test
