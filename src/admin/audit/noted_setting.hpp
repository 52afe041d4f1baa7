#pragma once

#include <string>

namespace idem::admin {

/// A setting's value, for a keyed digest, and as the audit shows it: without secrets.
struct NotedSetting {
  std::string name;
  std::string value;
  std::string shown;
};

}  // namespace idem::admin
