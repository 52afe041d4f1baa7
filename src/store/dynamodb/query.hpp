#pragma once

#include "json/writer.hpp"
#include "store/dynamodb/client.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::dynamodb {

/// A Query of one partition of the table, or of an index. Names and values go apart from the
/// expressions, so that no name can be one of the service's reserved words.
class Query {
 public:
  explicit Query(std::string_view table);

  Query& member(std::string_view name, std::string_view value);
  Query& flag(std::string_view name, bool value);
  Query& limit(std::size_t items);
  Query& name(std::string_view alias, std::string_view name);
  Query& value(std::string_view alias, const Value& value);
  Query& where(std::string_view condition) { return member("KeyConditionExpression", condition); }
  Query& project(std::string_view names) { return member("ProjectionExpression", names); }
  /// Behind the page that ended with this key; empty: from the beginning.
  Query& from(std::string_view key);
  Question finish();

 private:
  json::Writer out_;
  std::vector<std::pair<std::string, std::string>> names_;
  std::vector<std::pair<std::string, std::string>> values_;
};

/// A page of a Query or a Scan.
struct Page {
  std::vector<Item> items{};
  /// Of the items, also where the query returns no more than their number.
  std::uint64_t count = 0;
  std::string next{};  ///< LastEvaluatedKey as JSON; empty: this is the last page.
};
Page parse_page(const Reply& reply);

}  // namespace idem::dynamodb
