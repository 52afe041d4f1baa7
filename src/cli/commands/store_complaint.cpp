#include "cli/commands/store_complaint.hpp"

#include "cli/commands/tables.hpp"

#include <cstdio>

namespace idem::cli {

int complain_of_store(const std::string& sentence, int code) {
  std::fprintf(stderr, "idem store: %s\n", printable(sentence).c_str());
  return code;
}

}  // namespace idem::cli
