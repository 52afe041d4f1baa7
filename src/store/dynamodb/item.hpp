#pragma once

#include "json/value.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// Items and their attributes in the service's JSON: {"B": base64}, {"S": text}, {"N": digits} and
/// lists of bytes. Only these four types occur in our tables.
namespace idem::dynamodb {

struct Bytes {
  std::string is;
  bool operator==(const Bytes&) const = default;
};
using BytesList = std::vector<std::string>;
using Value = std::variant<std::int64_t, std::string, Bytes, BytesList>;

/// As JSON: {"B":"AAEC"}.
std::string to_json(const Value& value);

/// The key of an item.
struct Key {
  std::string partition;  ///< Text.
  std::string sort;       ///< Bytes, at least one.
  auto operator<=>(const Key&) const = default;
};
std::string to_json(const Key& key);

class Item {
 public:
  /// Attributes of other types, and those that cannot be read, are as if they were absent: our
  /// checksums find what is missing.
  static Item parse(const json::Value& value);

  void set(std::string name, Value value) { values_.insert_or_assign(std::move(name), value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  bool is_empty() const noexcept { return values_.empty(); }

  /// Empty or none without such an attribute.
  std::string_view bytes(std::string_view name) const;
  std::string_view text(std::string_view name) const;
  std::optional<std::int64_t> number(std::string_view name) const;
  const BytesList& list(std::string_view name) const;

  const std::map<std::string, Value, std::less<>>& values() const noexcept { return values_; }

 private:
  template <class T>
  const T* get(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
};

/// One item's change by UpdateItem, with its condition. Names and values go apart from the
/// expression, so that no name can be one of the service's reserved words.
class Update {
 public:
  explicit Update(Key key) : key_(std::move(key)) {}

  Update& set(std::string_view name, const Value& value);
  Update& remove(std::string_view name);
  /// Adds to a number that counts as 0 without such an attribute.
  Update& add(std::string_view name, std::int64_t change);
  /// Appends to a list that counts as empty without such an attribute.
  Update& append(std::string_view name, const BytesList& lines);

  /// On the condition that there is no such item.
  Update& if_absent();
  /// On the condition that this attribute has that value.
  Update& if_equal(std::string_view name, const Value& value);
  Update& if_missing(std::string_view name);
  Update& if_at_most(std::string_view name, std::int64_t value);

  const Key& key() const noexcept { return key_; }
  /// Without a change: DeleteItem's, with the same condition.
  std::string to_request(std::string_view table) const;

 private:
  std::string name_of(std::string_view name);
  std::string value_of(const Value& value);
  void condition(const std::string& text);

  Key key_;
  std::string sets_;
  std::string removes_;
  std::string adds_;
  std::string condition_;
  std::map<std::string, std::string, std::less<>> names_;  ///< "#v" → "v".
  std::vector<std::string> values_;                        ///< ":0", ":1" and so on, as JSON.
};

}  // namespace idem::dynamodb
