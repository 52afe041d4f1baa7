#pragma once

#include "store/log/ids/merge.hpp"
#include "store/log/ids/sorted_run.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <random>

/// Random entries, and files of them.
namespace idem::test {

using segments::IdEntry;
using segments::Merge;
using segments::MergePlan;
using segments::SortedRun;
using segments::SortedRunWriter;

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void put_content(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class SortedRuns : public testing::Test {
 protected:
  using Model = std::map<RecordId, IdEntry>;

  RecordId random_id() {
    RecordId id;
    for (std::uint8_t& byte : id.bytes) byte = static_cast<std::uint8_t>(random_());
    return id;
  }
  IdEntry entry_of(const RecordId& id) {
    return {id, random_() | 1U, static_cast<std::uint32_t>(random_()), State::completed};
  }
  Model random_entries(std::size_t count) {
    Model model;
    while (model.size() < count) {
      const RecordId id = random_id();
      model.emplace(id, entry_of(id));
    }
    return model;
  }
  std::string path(std::uint32_t number) const { return folder_.file(fmt::format("{}", number)); }
  void write(std::uint32_t number, const Model& model) const {
    SortedRunWriter writer(path(number), number, model.size());
    for (const auto& [id, entry] : model) writer.append(entry);
    ASSERT_EQ(writer.finish(), 0);
  }
  std::shared_ptr<const SortedRun> open(std::uint32_t number, bool with_filter = true) {
    auto run = SortedRun::open(path(number), number, with_filter);
    EXPECT_TRUE(run) << run.error();
    return run ? *run : nullptr;
  }
  static void expect_all(const SortedRun& run, const Model& model) {
    for (const auto& [id, entry] : model) {
      IdEntry found;
      ASSERT_TRUE(run.may_have(id));
      ASSERT_EQ(run.find(id, found), SortedRun::Found::yes);
      ASSERT_EQ(found, entry);
    }
  }
  static std::vector<IdEntry> listed(std::shared_ptr<const SortedRun> run, const RecordId& from,
                                     std::size_t pages) {
    std::vector<IdEntry> entries;
    SortedRun::Cursor cursor(std::move(run), from, pages, false);
    for (; !cursor.is_at_end(); cursor.advance()) entries.push_back(cursor.entry());
    EXPECT_FALSE(cursor.has_damage());
    return entries;
  }

  TempFolder folder_;
  std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};

}  // namespace idem::test
