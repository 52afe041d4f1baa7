#include <idem/assert.hpp>

#include "core/bytes/last_words.hpp"

#include <cstdlib>
#include <string>

namespace idem {

void assertion_failed(const char* condition, std::source_location where) noexcept {
  say_last_words(std::string("idem: broken invariant: ") + condition + " at " + where.file_name() +
                 ":" + std::to_string(where.line()) + " in " + where.function_name());
  std::abort();
}

}  // namespace idem
