#include "core/evidence/repetition.hpp"

#include "core/bytes/digests.hpp"

#include <idem/foreign_call.hpp>

#include <algorithm>

namespace idem {

Next next_step(const CallHistory& history, const Declared& declared) noexcept {
  if (!history.quiet_for) return {NextStep::send};
  // It must arrive within the window, not only leave.
  const bool is_known = history.first_ago + declared.timeout < declared.deduplicates;
  if (is_known) return {NextStep::send};
  if (!declared.has_lookup) return {NextStep::give_up};
  const Millis missing = declared.lookup_grace - *history.quiet_for;
  if (missing >= Millis{0}) return {NextStep::wait, missing + Millis{1}};
  return {NextStep::look_up};
}

inline namespace v0_1 {

std::string derived_key(const RecordId& record, std::string_view phase, std::string_view message) {
  FramedDigest digest;
  digest.add("idem derived key");
  digest.add({reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size()});
  digest.add(phase);
  digest.add(message);
  const Digest whole = digest.finish();
  std::array<std::uint8_t, 16> half{};
  std::copy_n(whole.begin(), half.size(), half.begin());
  return to_hex(half);
}

}  // namespace v0_1

}  // namespace idem
