#include "support/power_loss.hpp"
#include "store/log/check_store.hpp"
#include "store/sqlite/check_file.hpp"
#include "store_conformance/embedded/killed_writer.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

/// The embedded stores when the power fails: of what no sync made durable, any sector, any length
/// and any name may be on the disk or not.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

constexpr int images_of_a_life = 10;
constexpr int lives_of_a_store = 6;
constexpr int images_usual = 80;

void copy_folder(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive);
}

struct Losses {
  std::size_t images = 0;
  std::size_t judged = 0;
  std::string first;  ///< Empty: none.
};

class PowerLossTest : public KilledWriter {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's library has to be loaded first";
#endif
    const char* const seeded = std::getenv("IDEM_SEED");
    const unsigned seed =
        seeded != nullptr ? static_cast<unsigned>(std::atoi(seeded)) : std::random_device()();
    fmt::print("IDEM_SEED={}\n", seed);
    random_.seed(seed);
  }

  /// Each life goes on from an image of the one before, so that starts are cut off, too; now and
  /// then from nothing, because all that was said is judged each time.
  Losses lose_power(int images_wanted, const std::string& forgets = "") {
    for (int life = 0; life * images_of_a_life < images_wanted && losses_.first.empty(); ++life) {
      if (life % lives_of_a_store == 0) {
        base_.clear();
        said_.clear();
        // Of some stores so large that the log prepares its next file.
        segment_bytes_ = life / lives_of_a_store % 3 == 2 ? 32 * tiny : tiny;
      }
      live(life, forgets);
    }
    fmt::print("images={} judged={}\n", losses_.images, losses_.judged);
    return losses_;
  }

 private:
  void live(int life, const std::string& forgets) {
    const std::string root = folder_.file("life");
    const std::string trace = root + ".trace";
    fs::remove_all(root);
    fs::remove(trace);
    if (base_.empty()) {
      fs::create_directory(root);
    } else {
      copy_folder(base_, root);
    }
    run_and_kill(root + "/store", static_cast<std::uint64_t>(life) * keys_of_a_life + 1,
                 static_cast<int>(random_() % (segment_bytes_ == tiny ? 3'000 : 9'000)) + 1,
                 {"LD_PRELOAD=" IDEM_BIN_DIR "/libidem_disk_trace.so", "IDEM_DISK_ROOT=" + root,
                  "IDEM_DISK_TRACE=" + trace, "IDEM_DISK_FORGETS=" + forgets});
    clock.advance(a_life);
    PowerLoss disk(trace, base_);
    ASSERT_GT(disk.steps(), 0U);
    std::set<std::size_t> moments;
    for (int i = 0; i < images_of_a_life; ++i) moments.insert(random_() % (disk.steps() + 1));
    const std::vector<Said> before = said_;
    std::string next;
    for (const std::size_t moment : moments) {
      disk.go_to(moment);
      said_ = before;
      const auto of_this_life = parse(disk.said());
      said_.insert(said_.end(), of_this_life.begin(), of_this_life.end());
      if (!next.empty()) fs::remove_all(next);
      next = folder_.file(fmt::format("image{}-{}", life, moment));
      disk.put(next, random_);
      const std::string loss = loss_in(next);
      if (loss.empty()) continue;
      losses_.first = fmt::format("life {}, step {}: {}", life, moment, loss);
      return;
    }
    ASSERT_TRUE(disk.unknown().empty()) << disk.unknown().front();
    if (!base_.empty()) fs::remove_all(base_);
    base_ = next;
  }

  std::string loss_in(const std::string& image) {
    const std::string copy = folder_.file("copy");
    fs::remove_all(copy);
    copy_folder(image, copy);
    const std::string path = copy + "/store";
    {
      const auto store = try_open(path);
      if (!store) return store.error().detail;
      if (auto loss = first_loss(**store, said_); !loss.empty()) return loss;
    }
    losses_.judged = judged_;
    ++losses_.images;
    const auto report =
        kind_ == "sqlite" ? sqlite::check_file(path, {}) : segments::check_store(path, {});
    if (!report) return report.error().why;
    if (report->found == 0) return {};
    return report->findings.front().where + ": " + report->findings.front().what;
  }

  TempFolder folder_;
  std::mt19937 random_;
  std::vector<Said> said_;
  std::string base_;  ///< What the disk has when the next life begins. Empty: nothing.
  Losses losses_;
};

class EachStore : public PowerLossTest, public testing::WithParamInterface<const char*> {};

TEST_P(EachStore, T16_whatever_the_disk_kept_nothing_that_was_said_is_lost) {
  kind_ = GetParam();
  const char* const wanted = std::getenv("IDEM_POWER_LOSSES");
  const Losses losses = lose_power(wanted != nullptr ? std::atoi(wanted) : images_usual);
  EXPECT_EQ(losses.first, "");
  EXPECT_GT(losses.judged, losses.images);
}
INSTANTIATE_TEST_SUITE_P(PowerLoss, EachStore, testing::Values("log", "sharded", "sqlite"),
                         [](const auto& store) { return store.param; });

struct Forgets {
  const char* name;
  const char* kind;
  const char* files;  ///< A part of their paths, each with a $ behind it.
};
class ForgettingDisk : public PowerLossTest, public testing::WithParamInterface<Forgets> {};

// Else the test above would prove nothing.
TEST_P(ForgettingDisk, a_disk_that_forgets_what_was_synced_is_noticed) {
  kind_ = GetParam().kind;
  const Losses losses = lose_power(images_usual, GetParam().files);
  EXPECT_NE(losses.first, "");
  fmt::print("noticed: {}\n", losses.first);
}
INSTANTIATE_TEST_SUITE_P(
    PowerLoss, ForgettingDisk,
    testing::Values(Forgets{"commits", "log", ".commits$"}, Forgets{"versions", "log", ".records$"},
                    Forgets{"ids", "log", ".ids$"}, Forgets{"runs", "log", "runs.part$"},
                    Forgets{"format", "log", "format.part$"}, Forgets{"tables", "log", ".sst$"},
                    Forgets{"manifest", "log", "MANIFEST-"}, Forgets{"current", "log", ".dbtmp$"},
                    Forgets{"names", "log", "store$"},
                    Forgets{"names_of_commits", "log", "/commits$"},
                    Forgets{"names_of_versions", "log", "/records$"},
                    Forgets{"names_of_ids", "log", "/ids$"},
                    Forgets{"names_of_index", "log", "/index$"},
                    Forgets{"names_of_shards", "sharded", "/shards$"},
                    Forgets{"wal", "sqlite", "-wal$"}, Forgets{"database", "sqlite", "store$"}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace idem::test
