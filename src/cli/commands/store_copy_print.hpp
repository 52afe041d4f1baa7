#pragma once

#include "store/store_copy.hpp"

#include <string>

namespace idem::cli {

/// What `idem store copy` did.
struct CopyReport {
  std::string from;  ///< URLs that may be shown.
  std::string to;
  std::string store_id;  ///< Of the copy.
  bool is_finished = false;
  bool was_finished = false;  ///< By an earlier run; then there is no pass.
  bool is_closed = false;     ///< The source.
  CopyPass pass;              ///< The last one.
};

/// To stdout.
void print(const CopyReport& report, bool json);
void print_undone(bool json);

}  // namespace idem::cli
