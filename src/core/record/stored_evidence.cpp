#include "core/record/stored_evidence.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/record/stored_fence.hpp"

#include <idem/store.hpp>

namespace idem {
namespace {

std::uint64_t bits_of(StoreTime moment) noexcept {
  return static_cast<std::uint64_t>(moment.time_since_epoch().count());
}
StoreTime moment_of(std::uint64_t bits) noexcept {
  return StoreTime(Millis(static_cast<std::int64_t>(bits)));
}

/// 0: there was no record.
bool is_state(std::uint8_t number) noexcept {
  return number <= static_cast<std::uint8_t>(State::expired);
}

}  // namespace

std::string encode_evidence(const EvidenceEntry& entry) {
  std::string out(8 + 3 + 16 + framed_bytes(entry.source) + framed_bytes(entry.evidence) +
                      framed_bytes(entry.reason),
                  '\0');
  ByteWriter to(out.data());
  to.number(stored_fence(entry.fence));
  to.number(static_cast<std::uint8_t>(entry.before));
  to.number(static_cast<std::uint8_t>(entry.after));
  to.number(static_cast<std::uint8_t>(entry.applied ? 1 : 0));
  to.number(bits_of(entry.observed_at));
  to.number(bits_of(entry.recorded_at));
  to.framed(entry.source);
  to.framed(entry.evidence);
  to.framed(entry.reason);
  return out;
}

std::expected<EvidenceEntry, std::string_view> decode_evidence(std::string_view bytes) {
  ByteReader in(bytes);
  EvidenceEntry entry;
  entry.fence = fence_from(in.number<std::uint64_t>());
  const auto before = in.number<std::uint8_t>();
  const auto after = in.number<std::uint8_t>();
  entry.before = static_cast<State>(before);
  entry.after = static_cast<State>(after);
  entry.applied = in.number<std::uint8_t>() != 0;
  entry.observed_at = moment_of(in.number<std::uint64_t>());
  entry.recorded_at = moment_of(in.number<std::uint64_t>());
  entry.source = in.framed();
  entry.evidence = in.framed();
  entry.reason = in.framed();
  if (in.is_cut_short()) return std::unexpected("a line of its evidence is cut short");
  if (!in.is_at_end()) return std::unexpected("bytes follow a line of its evidence");
  if (!is_state(before) || !is_state(after)) {
    return std::unexpected("a state in its evidence is none of ours");
  }
  return entry;
}

}  // namespace idem
