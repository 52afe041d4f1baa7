// Writes each target's seeds into a folder of its own under the given one.
#include "fuzz/seeds.hpp"
#include "fuzz/targets.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  for (const idem::fuzz::Target& target : idem::fuzz::targets) {
    const auto folder = std::filesystem::path(argv[1]) / target.name;
    std::filesystem::create_directories(folder);
    for (const idem::fuzz::Seed& seed : idem::fuzz::seeds_of(target.name)) {
      std::ofstream(folder / seed.name, std::ios::binary) << seed.bytes;
    }
  }
}
