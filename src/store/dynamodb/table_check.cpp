#include "store/dynamodb/table_check.hpp"

#include "json/writer.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"
#include "store/dynamodb/table.hpp"

namespace idem::dynamodb {
namespace {

/// The fields of `value` that a path of names leads to; nullptr: there are none.
const json::Value* at(const json::Value* value, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) {
    if (value != nullptr) value = value->find(name);
  }
  return value;
}

std::string_view text_of(const json::Value* value) {
  const auto* const text = value != nullptr ? std::get_if<std::string>(&value->is) : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

const json::Array& array_of(const json::Value* value) {
  static const json::Array none;
  const auto* const array = value != nullptr ? std::get_if<json::Array>(&value->is) : nullptr;
  return array != nullptr ? *array : none;
}

/// "p S HASH, s B RANGE": names with types and roles.
std::string keys_of(const json::Value* schema, const json::Value* table) {
  std::string text;
  for (const json::Value& key : array_of(schema)) {
    const std::string_view name = text_of(key.find("AttributeName"));
    std::string_view type = "?";
    for (const json::Value& one : array_of(at(table, {"AttributeDefinitions"}))) {
      if (text_of(one.find("AttributeName")) == name) type = text_of(one.find("AttributeType"));
    }
    if (!text.empty()) text += ", ";
    text += std::string(name) + " " + std::string(type) + " " +
            std::string(text_of(key.find("KeyType")));
  }
  return text;
}

constexpr std::string_view table_keys = "p S HASH, s B RANGE";

struct IndexShape {
  std::string_view name;
  std::string_view keys;
};
constexpr IndexShape indexes[] = {{due_index, "d S HASH, t N RANGE"},
                                  {claims_index, "c S HASH, w N RANGE"}};

const json::Value* index_of(const json::Value* table, std::string_view name) {
  for (const json::Value& one : array_of(at(table, {"GlobalSecondaryIndexes"}))) {
    if (text_of(one.find("IndexName")) == name) return &one;
  }
  return nullptr;
}

void write_key(json::Writer& out, std::string_view name, std::string_view role) {
  out.begin_object();
  out.member("AttributeName", name);
  out.member("KeyType", role);
  out.end_object();
}

void write_keys(json::Writer& out, std::string_view hash, std::string_view range) {
  out.name("KeySchema");
  out.begin_array();
  write_key(out, hash, "HASH");
  write_key(out, range, "RANGE");
  out.end_array();
}

void write_index(json::Writer& out, std::string_view name, std::string_view hash,
                 std::string_view range) {
  out.begin_object();
  out.member("IndexName", name);
  write_keys(out, hash, range);
  out.name("Projection");
  out.json(R"({"ProjectionType":"KEYS_ONLY"})");
  out.end_object();
}

std::string description_of(const std::string& table) {
  json::Writer out;
  out.begin_object();
  out.member("TableName", table);
  out.end_object();
  return out.take();
}

}  // namespace

std::string creation_of(const std::string& table) {
  json::Writer out;
  out.begin_object();
  out.member("TableName", table);
  out.member("BillingMode", "PAY_PER_REQUEST");
  out.name("AttributeDefinitions");
  out.begin_array();
  const std::pair<std::string_view, std::string_view> types[] = {
      {attribute::partition, "S"}, {attribute::sort, "B"},   {attribute::due, "S"},
      {attribute::due_at, "N"},    {attribute::claims, "S"}, {attribute::claimable_at, "N"}};
  for (const auto& [name, type] : types) {
    out.begin_object();
    out.member("AttributeName", name);
    out.member("AttributeType", type);
    out.end_object();
  }
  out.end_array();
  write_keys(out, attribute::partition, attribute::sort);
  out.name("GlobalSecondaryIndexes");
  out.begin_array();
  write_index(out, due_index, attribute::due, attribute::due_at);
  write_index(out, claims_index, attribute::claims, attribute::claimable_at);
  out.end_array();
  out.end_object();
  return out.take();
}

TableCheck judge_table(const json::Value& description) {
  TableCheck check;
  const json::Value* const table = description.find("Table");
  const std::string_view status = text_of(at(table, {"TableStatus"}));
  if (status == "CREATING") {
    check.is_settling = true;
    return check;
  }
  if (status != "ACTIVE" && status != "UPDATING") {
    check.refusal = "the table is " + std::string(status.empty() ? "of no status" : status);
    return check;
  }
  const std::string keys = keys_of(at(table, {"KeySchema"}), table);
  if (keys != table_keys) {
    check.refusal = "the table is none of Idem's: its keys are (" + keys + "), not (" +
                    std::string(table_keys) + "); name another table";
    return check;
  }
  for (const IndexShape& shape : indexes) {
    const json::Value* const index = index_of(table, shape.name);
    const std::string found = keys_of(at(index, {"KeySchema"}), table);
    if (found != shape.keys) {
      check.refusal = "the table lacks the index " + std::string(shape.name) + " of (" +
                      std::string(shape.keys) +
                      "): sweeper, reaper and dispatcher would find no "
                      "records; make it, or name another table";
      return check;
    }
    const std::string_view index_status = text_of(at(index, {"IndexStatus"}));
    check.is_settling |= index_status != "ACTIVE" && index_status != "UPDATING";
  }
  if (!array_of(at(table, {"Replicas"})).empty()) {
    check.warnings.push_back(
        "the table is replicated to other regions: gateways in two regions run a key twice, and "
        "after a move to another region retries of the latest requests run again; all gateways "
        "must use one region");
  }
  const json::Value* const kept = at(table, {"DeletionProtectionEnabled"});
  if (const auto* const is_kept = kept != nullptr ? std::get_if<bool>(&kept->is) : nullptr;
      is_kept != nullptr && !*is_kept) {
    check.warnings.push_back(
        "the table's deletion protection is off: with the table the knowledge of what ran is gone");
  }
  return check;
}

Task<TableCheck> open_table(Client& client, bool make) {
  const MonotonicTime until = MonotonicClock::now() + limits::dynamodb_table_max;
  TableCheck check;
  for (bool is_made = false; MonotonicClock::now() < until;) {
    Task<ReplyResult> asking = client.ask({"DescribeTable", description_of(client.table())});
    const ReplyResult reply = co_await std::move(asking);
    const bool is_missing = !reply && reply.error().type == "ResourceNotFoundException";
    if (!reply && !is_missing) {
      check.refusal = reply.error().why;
      co_return check;
    }
    if (reply) check = judge_table(reply->body);
    if (reply && !check.is_settling) co_return check;
    if (is_missing && !make) {
      check.refusal = "the table does not exist";
      check.is_missing = true;
      co_return check;
    }
    if (is_missing && !is_made) {
      Task<ReplyResult> making = client.ask({"CreateTable", creation_of(client.table())});
      const ReplyResult made = co_await std::move(making);
      is_made = true;
      // Another node may have made it in the same moment.
      if (!made && made.error().type != "ResourceInUseException") {
        check.refusal = "cannot make the table: " + made.error().why;
        co_return check;
      }
      continue;
    }
    Task<void> pausing = client.pause();
    co_await std::move(pausing);
  }
  check.refusal = "the table is still being made";
  co_return check;
}

}  // namespace idem::dynamodb
