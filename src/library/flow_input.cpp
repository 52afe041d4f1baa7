#include "library/flow_input.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"

namespace idem::library {
namespace {

constexpr std::uint32_t version = 2;
constexpr std::uint32_t without_a_checksum = 1;

}  // namespace

std::string pack_input(const Request& request) {
  std::size_t size = 2 * sizeof version + framed_bytes(request.method) +
                     framed_bytes(request.target) + framed_bytes(request.scope) +
                     framed_bytes(request.body);
  for (const auto& [name, value] : request.headers)
    size += framed_bytes(name) + framed_bytes(value);
  std::string bytes(size, '\0');
  ByteWriter to(bytes.data());
  to.number(version);
  to.framed(request.method);
  to.framed(request.target);
  to.framed(request.scope);
  to.framed(request.body);
  to.number(static_cast<std::uint32_t>(request.headers.size()));
  for (const auto& [name, value] : request.headers) {
    to.framed(name);
    to.framed(value);
  }
  return bytes;
}

std::string sealed_input(const RecordId& id, std::string_view packed) {
  std::string sealed;
  sealed.reserve(packed.size() + checksum_bytes);
  sealed = packed;
  append_checksum(id, sealed);
  return sealed;
}

std::optional<Request> unpack_input(const RecordId& id, std::string_view sealed) {
  // Damage that makes one version of another is found: the checksum is then missing, or left over.
  const auto made_by = ByteReader(sealed).number<std::uint32_t>();
  const auto packed =
      made_by == without_a_checksum ? std::optional(sealed) : without_checksum(id, sealed);
  if (!packed || (made_by != version && made_by != without_a_checksum)) return std::nullopt;
  ByteReader from(*packed);
  (void)from.number<std::uint32_t>();  // The version.
  Request request;
  request.method = from.framed();
  request.target = from.framed();
  request.scope = from.framed();
  request.body = from.framed();
  const auto fields = from.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < fields && !from.is_cut_short(); ++i) {
    std::string name(from.framed());
    std::string value(from.framed());
    request.headers.push_back({std::move(name), std::move(value)});
  }
  if (from.is_cut_short() || !from.is_at_end()) return std::nullopt;
  return request;
}

}  // namespace idem::library
