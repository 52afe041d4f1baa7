// The fuzz targets without a fuzzer: every seed, among them each input that once found a bug and
// the outside suites where they are present, through each target that reads such bytes.
#include "fuzz/check.hpp"
#include "fuzz/seeds.hpp"
#include "fuzz/targets.hpp"
#include "support/external_data.hpp"

#include <gtest/gtest.h>

#include <string>

namespace idem::fuzz {
namespace {

class FuzzSeeds : public testing::TestWithParam<Target> {};

TEST_P(FuzzSeeds, keep_their_properties) {
  const auto seeds = seeds_of(GetParam().name);
  EXPECT_GT(seeds.size(), 4U) << "fuzz/seeds was not found";
  for (const Seed& seed : seeds) {
    seed_name = seed.name;
    GetParam().run(seed.bytes);
  }
}

/// Every beginning of every house seed: what a connection or a torn file may hold.
TEST_P(FuzzSeeds, keep_their_properties_when_cut_short) {
  for (const Seed& seed : seeds_of(GetParam().name)) {
    if (!seed.name.starts_with("house")) continue;
    seed_name = seed.name;
    for (std::size_t size = 0; size < seed.bytes.size(); ++size) {
      GetParam().run(std::string_view(seed.bytes).substr(0, size));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzSeeds, testing::ValuesIn(targets),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(FuzzSeedFiles, include_the_outside_suites) {
  IDEM_NEED_EXTERNAL(folder);
  EXPECT_GT(seeds_of("differential").size(), 700U);
  EXPECT_GT(seeds_of("canonical_json").size(), 250U);
}

}  // namespace
}  // namespace idem::fuzz
