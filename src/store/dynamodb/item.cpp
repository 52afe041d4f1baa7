#include "store/dynamodb/item.hpp"

#include "core/bytes/base64.hpp"
#include "json/writer.hpp"
#include "store/dynamodb/table.hpp"

#include <charconv>

namespace idem::dynamodb {
namespace {

std::optional<std::int64_t> to_number(std::string_view digits) {
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

const std::string* text_in(const json::Value& value, std::string_view type) {
  const json::Value* const found = value.find(type);
  return found != nullptr ? std::get_if<std::string>(&found->is) : nullptr;
}

std::optional<Value> parse_value(const json::Value& value) {
  if (const auto* base64 = text_in(value, "B")) {
    auto bytes = from_base64(*base64);
    if (!bytes) return std::nullopt;
    return Bytes{std::move(*bytes)};
  }
  if (const auto* text = text_in(value, "S")) return *text;
  if (const auto* digits = text_in(value, "N")) {
    const auto number = to_number(*digits);
    return number ? std::optional<Value>(*number) : std::nullopt;
  }
  const json::Value* const list = value.find("L");
  const auto* const lines = list != nullptr ? std::get_if<json::Array>(&list->is) : nullptr;
  if (lines == nullptr) return std::nullopt;
  BytesList all;
  for (const json::Value& line : *lines) {
    const auto* const base64 = text_in(line, "B");
    // A line that is no bytes becomes an empty one, which is none of ours: it reads as damaged.
    auto bytes = base64 != nullptr ? from_base64(*base64) : std::nullopt;
    all.push_back(bytes ? std::move(*bytes) : std::string());
  }
  return all;
}

void join(std::string& list, const std::string& one) {
  if (!list.empty()) list += ", ";
  list += one;
}

}  // namespace

std::string to_json(const Value& value) {
  json::Writer out;
  out.begin_object();
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    out.member("N", std::to_string(*number));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    out.member("S", *text);
  } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
    out.member("B", to_base64(bytes->is));
  } else {
    out.name("L");
    out.begin_array();
    for (const std::string& line : std::get<BytesList>(value)) out.json(to_json(Bytes{line}));
    out.end_array();
  }
  out.end_object();
  return out.take();
}

std::string to_json(const Key& key) {
  json::Writer out;
  out.begin_object();
  out.name(attribute::partition);
  out.json(to_json(Value(key.partition)));
  out.name(attribute::sort);
  out.json(to_json(Value(Bytes{key.sort})));
  out.end_object();
  return out.take();
}

Item Item::parse(const json::Value& value) {
  Item item;
  const auto* const members = std::get_if<json::Object>(&value.is);
  if (members == nullptr) return item;
  for (const json::Member& member : *members) {
    if (auto parsed = parse_value(member.value)) item.set(member.name, std::move(*parsed));
  }
  return item;
}

template <class T>
const T* Item::get(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? std::get_if<T>(&found->second) : nullptr;
}

std::string_view Item::bytes(std::string_view name) const {
  const Bytes* const found = get<Bytes>(name);
  return found != nullptr ? std::string_view(found->is) : std::string_view();
}

std::string_view Item::text(std::string_view name) const {
  const std::string* const found = get<std::string>(name);
  return found != nullptr ? std::string_view(*found) : std::string_view();
}

std::optional<std::int64_t> Item::number(std::string_view name) const {
  const std::int64_t* const found = get<std::int64_t>(name);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

const BytesList& Item::list(std::string_view name) const {
  static const BytesList none;
  const BytesList* const found = get<BytesList>(name);
  return found != nullptr ? *found : none;
}

std::string Update::name_of(std::string_view name) {
  std::string alias = "#" + std::string(name);
  names_.emplace(alias, name);
  return alias;
}

std::string Update::value_of(const Value& value) {
  values_.push_back(to_json(value));
  return ":" + std::to_string(values_.size() - 1);
}

void Update::condition(const std::string& text) {
  if (!condition_.empty()) condition_ += " AND ";
  condition_ += text;
}

Update& Update::set(std::string_view name, const Value& value) {
  join(sets_, name_of(name) + " = " + value_of(value));
  return *this;
}

Update& Update::remove(std::string_view name) {
  join(removes_, name_of(name));
  return *this;
}

Update& Update::add(std::string_view name, std::int64_t change) {
  join(adds_, name_of(name) + " " + value_of(change));
  return *this;
}

Update& Update::append(std::string_view name, const BytesList& lines) {
  const std::string alias = name_of(name);
  const std::string none = value_of(BytesList{});
  join(sets_, alias + " = list_append(if_not_exists(" + alias + ", " + none + "), " +
                  value_of(lines) + ")");
  return *this;
}

Update& Update::if_absent() {
  condition("attribute_not_exists(" + name_of(attribute::partition) + ")");
  return *this;
}

Update& Update::if_equal(std::string_view name, const Value& value) {
  condition(name_of(name) + " = " + value_of(value));
  return *this;
}

Update& Update::if_missing(std::string_view name) {
  condition("attribute_not_exists(" + name_of(name) + ")");
  return *this;
}

Update& Update::if_at_most(std::string_view name, std::int64_t value) {
  condition(name_of(name) + " <= " + value_of(value));
  return *this;
}

std::string Update::to_request(std::string_view table) const {
  std::string expression;
  const auto add_clause = [&](std::string_view verb, const std::string& list) {
    if (list.empty()) return;
    if (!expression.empty()) expression += ' ';
    expression += std::string(verb) + " " + list;
  };
  add_clause("SET", sets_);
  add_clause("REMOVE", removes_);
  add_clause("ADD", adds_);
  json::Writer out;
  out.begin_object();
  out.member("TableName", table);
  out.name("Key");
  out.json(to_json(key_));
  if (!expression.empty()) out.member("UpdateExpression", expression);
  if (!condition_.empty()) {
    out.member("ConditionExpression", condition_);
    out.member("ReturnValuesOnConditionCheckFailure", "ALL_OLD");
  }
  if (!names_.empty()) {
    out.name("ExpressionAttributeNames");
    out.begin_object();
    for (const auto& [alias, name] : names_) out.member(alias, name);
    out.end_object();
  }
  if (!values_.empty()) {
    out.name("ExpressionAttributeValues");
    out.begin_object();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      out.name(":" + std::to_string(i));
      out.json(values_[i]);
    }
    out.end_object();
  }
  out.end_object();
  return out.take();
}

}  // namespace idem::dynamodb
