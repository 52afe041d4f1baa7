#include "store/store_identity.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/naming/copied_identity.hpp"

#include <algorithm>

namespace idem {
namespace {

// Two bits apart, as for evidence (record_rows.cpp). Version 1 had no checksum.
constexpr std::uint8_t identity_version_unchecked = 1;
constexpr std::uint8_t identity_version = 2;

constexpr std::string_view is_damaged =
    "its identity is damaged: every key could run again; bring back a copy of the store that has "
    "all of its records, or empty it as a whole";

/// Appends to a string; ByteWriter would need the size beforehand.
class Appender {
 public:
  explicit Appender(std::string& out) : out_(out) {}
  template <std::unsigned_integral T>
  Appender& number(T value) {
    const std::size_t before = out_.size();
    out_.resize(before + sizeof value);
    ByteWriter(out_.data() + before).number(value);
    return *this;
  }
  template <std::size_t N>
  Appender& bytes(const std::array<std::uint8_t, N>& from) {
    out_.append(reinterpret_cast<const char*>(from.data()), N);
    return *this;
  }
  Appender& text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    out_.append(text);
    return *this;
  }

 private:
  std::string& out_;
};

}  // namespace

std::string generation_text(const StoreIdentity& identity) {
  const std::string mark = why_marked(identity.recorded.key_scope) ? "copied:" : "";
  return mark + std::to_string(identity.recorded.generation) + ":" +
         to_hex(identity.generation_mark);
}

std::string to_identity_value(const RowVersion& version, const StoreIdentity& identity) {
  std::string out;
  Appender to(out);
  const RecordedIdentity& recorded = identity.recorded;
  to.bytes(version).number(identity_version).bytes(identity.store_id).bytes(recorded.own);
  to.number(recorded.generation).text(recorded.key_scope).text(recorded.scope_source);
  to.number(static_cast<std::uint32_t>(recorded.epochs.size()));
  for (const SecretEpoch& epoch : recorded.epochs) to.number(epoch.from).text(epoch.id);
  to.number(static_cast<std::uint32_t>(identity.naming.routes.size()));
  for (const RouteName& route : identity.naming.routes) {
    to.text(joined_names(route.methods, ' ')).text(route.pattern).text(route.name);
    to.text(joined_names(route.formerly, '\n'));
  }
  to.text(joined_names(identity.naming.key_fields, ' '));
  to.bytes(identity.generation_mark);
  to.number(identity.change);
  to.number(static_cast<std::uint8_t>(identity.is_changing ? 1 : 0));
  to.number(to_bits(identity.changing_since));
  to.number(static_cast<std::uint8_t>(identity.is_complete ? 1 : 0));
  append_checksum(RecordId{}, out);
  return out;
}

std::expected<IdentityValue, std::string> parse_identity_value(std::string_view bytes) {
  IdentityValue value;
  StoreIdentity& identity = value.identity;
  ByteReader head(bytes);
  head.bytes(value.version);
  const auto version = head.number<std::uint8_t>();
  if (version == identity_version) {
    // Under another secret no record would be found, and every key would run again.
    const auto sound = without_checksum(RecordId{}, bytes);
    if (!sound) return std::unexpected(std::string(is_damaged));
    bytes = *sound;
  } else if (version != identity_version_unchecked) {
    return std::unexpected("its identity is of a version that this program does not know");
  }
  ByteReader in(bytes.substr(std::min(bytes.size(), value.version.size() + 1)));
  in.bytes(identity.store_id);
  in.bytes(identity.recorded.own);
  identity.recorded.generation = in.number<std::uint64_t>();
  identity.recorded.key_scope = in.framed();
  identity.recorded.scope_source = in.framed();
  // Counts are not trusted: a turn that reads past the end is the last.
  for (auto left = in.number<std::uint32_t>(); left > 0 && !in.is_cut_short(); --left) {
    const auto from = in.number<std::uint64_t>();
    identity.recorded.epochs.push_back({from, std::string(in.framed())});
  }
  for (auto left = in.number<std::uint32_t>(); left > 0 && !in.is_cut_short(); --left) {
    RouteName route;
    route.methods = split_names(in.framed(), ' ');
    route.pattern = in.framed();
    route.name = in.framed();
    route.formerly = split_names(in.framed(), '\n');
    identity.naming.routes.push_back(std::move(route));
  }
  identity.naming.key_fields = split_names(in.framed(), ' ');
  identity.naming.generation = identity.recorded.generation;
  identity.naming.by_operation = identity.recorded.key_scope == "operation";
  in.bytes(identity.generation_mark);
  identity.change = in.number<std::uint64_t>();
  identity.is_changing = in.number<std::uint8_t>() != 0;
  identity.changing_since = from_bits(in.number<std::uint64_t>());
  identity.is_complete = in.number<std::uint8_t>() != 0;
  if (in.is_cut_short() || !in.is_at_end()) return std::unexpected(std::string(is_damaged));
  return value;
}

}  // namespace idem
