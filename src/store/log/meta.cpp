#include "store/log/meta.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"

#include <idem/assert.hpp>

namespace idem::segments {
namespace {

constexpr std::string_view meta_counts = "counts";
constexpr std::string_view meta_clock = "clock";
constexpr std::string_view meta_identity = "identity";

}  // namespace

Meta::Value Meta::read(std::string_view name) {
  std::string bytes;
  const auto found = db_.get(Family::meta, name, bytes);
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::nullopt;
  const auto value = without_checksum(RecordId{}, bytes, name);
  if (!value) return std::unexpected("the checksum of " + std::string(name) + " does not match");
  return std::string(*value);
}

void Meta::write(std::string_view name, std::string_view value) {
  std::string bytes(value);
  append_checksum(RecordId{}, bytes, name);
  db_.append(Family::meta, name, bytes);
}

std::expected<std::optional<std::uint64_t>, std::string> Meta::number(std::string_view name) {
  const auto value = read(name);
  if (!value) return std::unexpected(value.error());
  if (!*value) return std::nullopt;
  ByteReader in(**value);
  const auto number = in.number<std::uint64_t>();
  if (in.is_cut_short()) return std::unexpected(std::string(name) + " is damaged");
  return number;
}

void Meta::put_number(std::string_view name, std::uint64_t value) {
  std::array<char, sizeof value> bytes{};
  ByteWriter(bytes.data()).number(value);
  write(name, {bytes.data(), bytes.size()});
}

std::expected<std::optional<ClockMark>, std::string> Meta::clock_mark() {
  const auto value = read(meta_clock);
  if (!value) return std::unexpected(value.error());
  if (!*value) return std::nullopt;
  ByteReader in(**value);
  ClockMark mark;
  mark.store = from_bits(in.number<std::uint64_t>());
  mark.uptime = Millis(static_cast<std::int64_t>(in.number<std::uint64_t>()));
  mark.boot_id = in.framed();
  if (in.is_cut_short()) return std::unexpected("the clock's mark is damaged");
  return mark;
}

void Meta::put_clock_mark(const ClockMark& mark) {
  std::string bytes(2 * sizeof(std::uint64_t) + framed_bytes(mark.boot_id), '\0');
  ByteWriter out(bytes.data());
  out.number(to_bits(mark.store));
  out.number(static_cast<std::uint64_t>(mark.uptime.count()));
  out.framed(mark.boot_id);
  write(meta_clock, bytes);
}

std::expected<std::optional<StoreIdentity>, std::string> Meta::identity() {
  const auto value = read(meta_identity);
  if (!value) return std::unexpected(value.error());
  if (!*value) return std::nullopt;
  auto parsed = parse_identity_value(**value);
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  return std::move(parsed->identity);
}

void Meta::put_identity(const StoreIdentity& identity) {
  write(meta_identity, to_identity_value({}, identity));
}

void save_naming(Database& db, const Naming& naming) {
  IDEM_ASSERT(naming.generation > 0);
  Meta meta(db);
  auto identity = meta.identity();
  if (!identity) return db.fail_step(Family::meta, identity.error());
  IDEM_ASSERT(*identity);  // The start has read it.
  (*identity)->naming = naming;
  (*identity)->recorded.generation = naming.generation;
  meta.put_identity(**identity);
}

std::expected<Counts, std::string> read_counts(Database& db) {
  const auto value = Meta(db).read(meta_counts);
  if (!value) return std::unexpected(value.error());
  Counts counts;
  if (!*value) return counts;
  ByteReader in(**value);
  counts.last_number = static_cast<std::int64_t>(in.number<std::uint64_t>());
  for (std::uint64_t& count : counts.by_state) count = in.number<std::uint64_t>();
  if (in.is_cut_short() || counts.last_number < 0) return std::unexpected("the counts are damaged");
  return counts;
}

void write_counts(Database& db, const Counts& counts) {
  std::array<char, (1 + std::tuple_size_v<decltype(counts.by_state)>)*sizeof(std::uint64_t)>
      bytes{};
  ByteWriter out(bytes.data());
  out.number(static_cast<std::uint64_t>(counts.last_number));
  for (const std::uint64_t count : counts.by_state) out.number(count);
  Meta(db).write(meta_counts, {bytes.data(), bytes.size()});
}

}  // namespace idem::segments
