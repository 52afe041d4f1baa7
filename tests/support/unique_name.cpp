#include "support/unique_name.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <random>

namespace idem::test {

std::string unique_name(std::string_view begin) {
  static const std::string process = fmt::format("{}_{:08x}", ::getpid(), std::random_device()());
  static std::atomic<int> made{0};
  return fmt::format("{}{}_{}", begin, process, ++made);
}

}  // namespace idem::test
