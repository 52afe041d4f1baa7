#include "store/log/ids/entry.hpp"

#include "core/bytes/byte_cursor.hpp"

namespace idem::segments {

void write_entry(const IdEntry& entry, char* out) noexcept {
  ByteWriter to(out);
  to.bytes(entry.id.bytes);
  to.number(entry.place);
  to.number(entry.size);
  to.number(static_cast<std::uint8_t>(entry.state));
}

IdEntry read_entry(const char* bytes) noexcept {
  IdEntry entry;
  ByteReader in({bytes, IdEntry::bytes});
  in.bytes(entry.id.bytes);
  entry.place = in.number<std::uint64_t>();
  entry.size = in.number<std::uint32_t>();
  entry.state = static_cast<State>(in.number<std::uint8_t>());
  return entry;
}

}  // namespace idem::segments
