#include "store/mysql/identity.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"

#include <idem/fingerprint.hpp>

namespace idem::mysql {
namespace {

constexpr std::uint8_t identity_version = 1;

template <std::unsigned_integral T>
void add(std::string& to, T value) {
  char bytes[sizeof value];
  ByteWriter(bytes).number(value);
  to.append(bytes, sizeof value);
}

void add(std::string& to, std::string_view text) {
  add(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

template <std::size_t N>
void add(std::string& to, const std::array<std::uint8_t, N>& bytes) {
  to.append(reinterpret_cast<const char*>(bytes.data()), N);
}

RouteName read_route(ByteReader& in) {
  RouteName route;
  route.methods = split_names(in.framed(), ' ');
  route.pattern = in.framed();
  route.name = in.framed();
  route.formerly = split_names(in.framed(), '\n');
  return route;
}

}  // namespace

bool StoreIdentity::is_own() const {
  return recorded.epochs.empty() || recorded.epochs.back().id == secret_id(recorded.own);
}

std::string to_identity_value(const StoreIdentity& identity) {
  const RecordedIdentity& recorded = identity.recorded;
  std::string value;
  add(value, identity_version);
  add(value, identity.store_id);
  add(value, recorded.own);
  add(value, recorded.generation);
  add(value, recorded.key_scope);
  add(value, recorded.scope_source);
  add(value, static_cast<std::uint32_t>(recorded.epochs.size()));
  for (const SecretEpoch& epoch : recorded.epochs) {
    add(value, epoch.from);
    add(value, epoch.id);
  }
  add(value, static_cast<std::uint32_t>(identity.naming.routes.size()));
  for (const RouteName& route : identity.naming.routes) {
    add(value, joined_names(route.methods, ' '));
    add(value, route.pattern);
    add(value, route.name);
    add(value, joined_names(route.formerly, '\n'));
  }
  add(value, joined_names(identity.naming.key_fields, ' '));
  append_checksum(RecordId{}, value);
  return value;
}

std::expected<StoreIdentity, std::string> parse_identity_value(std::string_view bytes) {
  // Under another secret no record would be found, and every key would run again.
  const std::string is_damaged =
      "its identity is damaged: every key could run again; bring back a copy of the database that "
      "has all of its records";
  const auto sound = without_checksum(RecordId{}, bytes);
  if (!sound) return std::unexpected(is_damaged);
  ByteReader in(*sound);
  if (in.number<std::uint8_t>() != identity_version) {
    return std::unexpected("its identity is of a version that this program does not know");
  }
  StoreIdentity identity;
  RecordedIdentity& recorded = identity.recorded;
  in.bytes(identity.store_id);
  in.bytes(recorded.own);
  recorded.generation = in.number<std::uint64_t>();
  recorded.key_scope = in.framed();
  recorded.scope_source = in.framed();
  for (auto left = in.number<std::uint32_t>(); left > 0 && !in.is_cut_short(); --left) {
    const auto from = in.number<std::uint64_t>();
    recorded.epochs.push_back({from, std::string(in.framed())});
  }
  for (auto left = in.number<std::uint32_t>(); left > 0 && !in.is_cut_short(); --left) {
    identity.naming.routes.push_back(read_route(in));
  }
  identity.naming.key_fields = split_names(in.framed(), ' ');
  identity.naming.generation = recorded.generation;
  identity.naming.by_operation = recorded.key_scope == "operation";
  if (in.is_cut_short() || !in.is_at_end()) return std::unexpected(is_damaged);
  return identity;
}

}  // namespace idem::mysql
