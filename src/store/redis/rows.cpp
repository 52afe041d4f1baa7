#include "store/redis/rows.hpp"

#include "core/transitions/transitions.hpp"
#include "store/redis/servers.hpp"

#include <fmt/format.h>

namespace idem::redis {
namespace {

std::string place_of(const std::optional<StoreTime>& moment) {
  return moment ? std::to_string(moment->time_since_epoch().count()) : "+inf";
}

}  // namespace

Names::Names(const std::string& prefix) {
  const auto place = [](const std::string& tag) { return Place{"{" + tag + "}", slot_of(tag)}; };
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i] = place(fmt::format("{}:{:02x}", prefix, i));
  }
  identity_ = place(prefix);
  identity_.tag += "identity";
  journals_ = place(prefix);
  journals_.tag += "journal:";
}

Listing listing_of(const Record& record) {
  switch (record.state) {
    case State::pending:
    case State::in_progress:
      return {sweep_set, place_of(transitions::due_at(record))};
    case State::unknown:
      return {unknown_set, place_of(record.changed_at)};
    case State::completed:
    case State::failed_retryable:
    case State::expired:
      return {reap_set, place_of(transitions::due_at(record))};
  }
  return {reap_set, "+inf"};
}

std::string counter_of(State state) { return fmt::format("in:{}", static_cast<unsigned>(state)); }
std::string counter_of_operation(std::string_view operation) {
  return "op:" + std::string(operation);
}
std::string counter_of_generation(std::uint64_t generation) {
  return fmt::format("gen:{}", generation);
}
std::string counter_of_active(std::string_view scope) { return "u:active:" + std::string(scope); }
std::string counter_of_bytes(std::string_view scope) { return "u:bytes:" + std::string(scope); }

}  // namespace idem::redis
