#include "store/postgres/prepared.hpp"

#include <idem/limits.hpp>

namespace idem::postgres {
namespace {

/// The server analyses a text together with the types of its parameters.
std::string key_of(std::string_view sql, const std::vector<std::uint32_t>& types) {
  std::string key(sql);
  key += '\0';
  key.append(reinterpret_cast<const char*>(types.data()), types.size() * sizeof types.front());
  return key;
}

/// Readable in a log and in pg_prepared_statements. At most 63 bytes.
std::string name_of_ours(std::uint64_t number, std::string_view sql) {
  const auto call = sql.find("idem.");
  const auto what = call == sql.npos ? sql : sql.substr(call, sql.find('(', call) - call);
  return "idem_" + std::to_string(number) + " " + std::string(what.substr(0, 40));
}

}  // namespace

Prepared::Name Prepared::name_of(std::string_view sql, const std::vector<std::uint32_t>& types,
                                 Kept kept) {
  if (kept == Kept::never) return {};
  if (kept == Kept::ours) {
    auto found = ours_.find(sql);
    if (found == ours_.end()) {
      found = ours_.emplace(std::string(sql), name_of_ours(++next_, sql)).first;
    }
    return {found->second, known_.contains(found->second)};
  }
  const std::string key = key_of(sql, types);
  if (const auto found = services_.find(key); found != services_.end()) {
    return {found->second, known_.contains(found->second)};
  }
  // When it is full, nothing is evicted: a service with values in its texts would evict all.
  if (!asked_.contains(key) || services_.size() >= limits::service_statements_max) return {};
  asked_.erase(key);
  return {services_.emplace(key, "idem_" + std::to_string(++next_)).first->second, false};
}

void Prepared::answered_no_rows(std::string_view sql, const std::vector<std::uint32_t>& types) {
  if (sql.size() > limits::service_statement_bytes_max) return;
  if (services_.size() >= limits::service_statements_max) return;
  if (asked_.size() >= limits::service_statements_max) asked_.clear();
  asked_.insert(key_of(sql, types));
}

void Prepared::forget(const Name& name) {
  if (known_.erase(name.text) > 0) left_over_.push_back(name.text);
  std::erase_if(services_, [&](const auto& one) { return one.second == name.text; });
}

void Prepared::forget_services() {
  for (const auto& [key, name] : services_) {
    if (known_.erase(name) > 0) left_over_.push_back(name);
  }
  services_.clear();
  asked_.clear();
}

void Prepared::clear() { *this = Prepared(); }

}  // namespace idem::postgres
