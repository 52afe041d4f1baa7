#include "store/log/usage_values.hpp"

#include "core/bytes/byte_cursor.hpp"

namespace idem::segments {

UsageValues::UsageValues(Database& db, embedded::InCommon* in_common)
    : db_(db), in_common_(in_common) {
  auto at = db_.iterate(Family::usage);
  for (at.to_first(); at.is_on_key(); at.next()) {
    ByteReader in(at.value());
    UsageChange usage;
    usage.active = static_cast<std::int64_t>(in.number<std::uint64_t>());
    usage.bytes = static_cast<std::int64_t>(in.number<std::uint64_t>());
    const std::string scope(at.key());
    book_.add(scope, usage);
    if (in_common_ != nullptr) in_common_->usage.add(scope, usage);
  }
  db_.check(at, Family::usage);
}

// A change of the rate's moment alone is not written: a start forgets it.
void UsageValues::add(const std::string& scope, const UsageChange& change) {
  book_.add(scope, change);
  if (in_common_ != nullptr) in_common_->usage.add(scope, change);
  if (change.active != 0 || change.bytes != 0) changed_.insert(scope);
}

std::string UsageValues::to_value(std::uint64_t active, std::uint64_t bytes) {
  std::string value(2 * sizeof(std::uint64_t), '\0');
  ByteWriter out(value.data());
  out.number(active);
  out.number(bytes);
  return value;
}

void UsageValues::flush() {
  for (const std::string& scope : changed_) {
    const Usage usage = book_.of(scope);
    if (usage.active == 0 && usage.bytes == 0) {
      db_.remove(Family::usage, scope);
      continue;
    }
    db_.append(Family::usage, scope, to_value(usage.active, usage.bytes));
  }
  changed_.clear();
}

}  // namespace idem::segments
