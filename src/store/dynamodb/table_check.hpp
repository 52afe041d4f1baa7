#pragma once

#include "store/dynamodb/client.hpp"

#include <optional>
#include <string>
#include <vector>

/// Makes the table, and decides by the service's own description of it whether it may hold a store.
namespace idem::dynamodb {

struct TableCheck {
  std::optional<std::string> refusal{};  ///< Why it may not; none: it may.
  bool is_missing = false;
  bool is_settling = false;             ///< It, or an index, is being made.
  std::vector<std::string> warnings{};  ///< The losses that its settings allow.
};

/// Pure. `description`: the answer to DescribeTable.
TableCheck judge_table(const json::Value& description);

/// The request that makes a table of ours.
std::string creation_of(const std::string& table);

/// Asks; makes a missing table if `make`, and waits until it can be used.
Task<TableCheck> open_table(Client& client, bool make);

}  // namespace idem::dynamodb
