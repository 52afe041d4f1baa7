#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace idem::fuzz {

struct Seed {
  std::string name;
  std::string bytes;
};

/// Where each target starts: what lies in fuzz/seeds/TARGET, what is made by encoders of ours, and
/// the outside suites, where they are present (tests/support/external_data.hpp).
std::vector<Seed> seeds_of(std::string_view target);

}  // namespace idem::fuzz
