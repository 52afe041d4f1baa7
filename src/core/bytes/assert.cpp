#include <idem/assert.hpp>

#include <cstdio>
#include <cstdlib>

namespace idem {

void assertion_failed(const char* condition, std::source_location where) noexcept {
  std::fprintf(stderr, "idem: broken invariant: %s at %s:%u in %s\n", condition, where.file_name(),
               where.line(), where.function_name());
  std::abort();
}

}  // namespace idem
