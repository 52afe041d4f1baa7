#pragma once

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "store/log/files.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace idem::segments {

/// A value of `meta` that is a number, with the checksum that each of them has. With `tag` it is
/// one of this shard alone.
inline std::string numbered_value(std::string_view name, std::uint64_t number,
                                  const StoreTag& tag = {}) {
  std::string value(sizeof number, '\0');
  ByteWriter(value.data()).number(number);
  append_checksum(RecordId{tag}, value, name);
  return value;
}

}  // namespace idem::segments
