#pragma once

#include <string>
#include <vector>

namespace idem::test {

/// An operation of docs/openapi.yaml.
struct AdminOperation {
  std::string method;
  std::string path;
  std::string role;      ///< The least one that may send it.
  bool is_open = false;  ///< Without a login too, unless settings say otherwise.
};

/// All of them, by the lines of the page.
std::vector<AdminOperation> admin_operations();

}  // namespace idem::test
