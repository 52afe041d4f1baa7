#include "store/dynamodb/query.hpp"

#include <algorithm>

namespace idem::dynamodb {
namespace {

/// A key as it came: objects and texts.
void write_key(const json::Value& value, json::Writer& out) {
  if (const auto* members = std::get_if<json::Object>(&value.is)) {
    out.begin_object();
    for (const json::Member& member : *members) {
      out.name(member.name);
      write_key(member.value, out);
    }
    out.end_object();
  } else if (const auto* text = std::get_if<std::string>(&value.is)) {
    out.text(*text);
  } else {
    out.null();
  }
}

}  // namespace

Query::Query(std::string_view table) {
  out_.begin_object();
  out_.member("TableName", table);
}

Query& Query::member(std::string_view name, std::string_view value) {
  out_.member(name, value);
  return *this;
}

Query& Query::flag(std::string_view name, bool value) {
  out_.flag(name, value);
  return *this;
}

Query& Query::limit(std::size_t items) {
  out_.member("Limit", items);
  return *this;
}

Query& Query::name(std::string_view alias, std::string_view name) {
  names_.emplace_back(alias, name);
  return *this;
}

Query& Query::value(std::string_view alias, const Value& value) {
  values_.emplace_back(alias, to_json(value));
  return *this;
}

Query& Query::from(std::string_view key) {
  if (key.empty()) return *this;
  out_.name("ExclusiveStartKey");
  out_.json(key);
  return *this;
}

Question Query::finish() {
  out_.name("ExpressionAttributeNames");
  out_.begin_object();
  for (const auto& [alias, name] : names_) out_.member(alias, name);
  out_.end_object();
  out_.name("ExpressionAttributeValues");
  out_.begin_object();
  for (const auto& [alias, value] : values_) {
    out_.name(alias);
    out_.json(value);
  }
  out_.end_object();
  out_.end_object();
  return {"Query", out_.take()};
}

Page parse_page(const Reply& reply) {
  Page page;
  const json::Value* const items = reply.body.find("Items");
  const auto* const all = items != nullptr ? std::get_if<json::Array>(&items->is) : nullptr;
  if (all != nullptr) {
    for (const json::Value& one : *all) page.items.push_back(Item::parse(one));
  }
  if (const json::Value* const count = reply.body.find("Count")) {
    if (const auto* const number = std::get_if<std::int64_t>(&count->is)) {
      page.count = static_cast<std::uint64_t>(std::max<std::int64_t>(*number, 0));
    }
  }
  if (const json::Value* const next = reply.body.find("LastEvaluatedKey")) {
    json::Writer out;
    write_key(*next, out);
    page.next = out.take();
  }
  return page;
}

}  // namespace idem::dynamodb
