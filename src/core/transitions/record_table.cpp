#include "core/transitions/record_table.hpp"

namespace idem {

Record damaged_row(const RecordId& id) {
  Record row;
  row.id = id;
  row.state = State{};
  return row;
}

bool is_listed(const List& verb, const Record& record) noexcept {
  if (record.state == State{}) return verb.damaged && !verb.state;
  return (!verb.state || record.state == *verb.state) &&
         (!verb.scope || record.scope == *verb.scope) &&
         (!verb.operation || record.operation == *verb.operation) &&
         (!verb.created_before || record.created_at < *verb.created_before);
}

Record without_bodies(Record record) {
  if (record.stored_request) record.stored_request->clear();
  if (record.response) {
    record.response->headers.clear();
    record.response->body.clear();
  }
  return record;
}

}  // namespace idem
