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
  db_.check(at, "usage");
}

// A change of the rate's moment alone is not written: a start forgets it.
void UsageValues::add(const std::string& scope, const UsageChange& change) {
  book_.add(scope, change);
  if (in_common_ != nullptr) in_common_->usage.add(scope, change);
  if (change.active != 0 || change.bytes != 0) changed_.insert(scope);
}

void UsageValues::flush() {
  for (const std::string& scope : changed_) {
    const Usage usage = book_.of(scope);
    if (usage.active == 0 && usage.bytes == 0) {
      db_.remove(Family::usage, scope);
      continue;
    }
    std::array<char, 2 * sizeof(std::uint64_t)> bytes{};
    ByteWriter out(bytes.data());
    out.number(usage.active);
    out.number(usage.bytes);
    db_.append(Family::usage, scope, {bytes.data(), bytes.size()});
  }
  changed_.clear();
}

}  // namespace idem::segments
