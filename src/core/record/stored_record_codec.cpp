#include "core/record/stored_record_codec.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"

namespace idem {
namespace {

enum Flag : std::uint8_t {
  is_dispatched = 1,
  has_request = 2,
  has_reconcile_after = 4,
  has_completed_at = 8,
  has_expires_at = 16,
  has_tombstone_until = 32,
  is_counted = 64,
  is_contested = 128,  // The byte's last bit.
};

constexpr std::size_t fixed_bytes = 5 + 4 + 32 + 8 + 16 + 5 * 8 + 4 + 8;

/// Small enough that sums and differences of a few moments cannot overflow 64 bits, and far beyond
/// every moment that a clock gives.
constexpr std::int64_t millis_max = std::int64_t{1} << 60;

/// Far above the size of any record, and small enough that sums do not overflow.
constexpr std::uint64_t charge_max = std::uint64_t{1} << 40;

std::uint8_t flags_of(const Record& record) noexcept {
  return static_cast<std::uint8_t>(
      (record.dispatched ? is_dispatched : 0) | (record.stored_request ? has_request : 0) |
      (record.reconcile_after ? has_reconcile_after : 0) |
      (record.completed_at ? has_completed_at : 0) | (record.expires_at ? has_expires_at : 0) |
      (record.tombstone_until ? has_tombstone_until : 0) | (record.charged != 0 ? is_counted : 0) |
      (record.is_contested ? is_contested : 0));
}

void write(ByteWriter& out, Millis length) noexcept {
  out.number(static_cast<std::uint64_t>(length.count()));
}
void write(ByteWriter& out, StoreTime moment) noexcept { write(out, moment.time_since_epoch()); }
void write(ByteWriter& out, const std::optional<StoreTime>& moment) noexcept {
  if (moment) write(out, *moment);
}

/// Keeps the first complaint, so that one check at the end is enough.
class MemberReader {
 public:
  explicit MemberReader(std::string_view bytes) noexcept : in(bytes) {}

  template <class Enum>
  Enum one_of_up_to(Enum last, std::string_view why_not) noexcept {
    const auto value = in.number<std::uint8_t>();
    if (value >= 1 && value <= static_cast<std::uint8_t>(last)) return static_cast<Enum>(value);
    complain(why_not);
    return last;
  }

  StoreTime moment() noexcept {
    const std::int64_t millis = number();
    if (millis < -millis_max || millis > millis_max) complain("a moment of it is out of bounds");
    return StoreTime(Millis(millis));
  }
  void moment_if(bool present, std::optional<StoreTime>& out) noexcept {
    if (present) out = moment();
  }

  Millis length() noexcept {
    const std::int64_t millis = number();
    if (millis < 0 || millis > millis_max) complain("a length of it is out of bounds");
    return Millis(millis);
  }

  /// None: its fence and its token are zeros.
  std::optional<Attempt> attempt() noexcept {
    Attempt attempt;
    attempt.fence = in.number<std::uint64_t>();
    in.bytes(attempt.token.bytes);
    if (attempt.fence != 0) return attempt;
    if (attempt.token != Token{}) complain("its attempt has a token and no fence");
    return std::nullopt;
  }

  std::uint64_t charge() noexcept {
    const auto bytes = in.number<std::uint64_t>();
    if (bytes == 0 || bytes > charge_max) complain("its charged bytes are out of bounds");
    return bytes;
  }

  void complain(std::string_view why) noexcept {
    if (why_.empty()) why_ = why;
  }
  std::string_view complaint() const noexcept {
    if (in.is_cut_short()) return "it is cut short";
    if (!in.is_at_end()) return "bytes follow its end";
    return why_;
  }

  ByteReader in;

 private:
  std::int64_t number() noexcept { return static_cast<std::int64_t>(in.number<std::uint64_t>()); }

  std::string_view why_;
};

/// The members that the transitions need in each state.
bool is_consistent(const Record& record) noexcept {
  switch (record.state) {
    case State::pending:
      return record.stored_request && record.expires_at;
    case State::in_progress:
    case State::unknown:
      return record.attempt.has_value();
    case State::failed_retryable:
      return record.expires_at.has_value();
    case State::completed:
    case State::expired:
      return record.completed_at && record.expires_at && record.tombstone_until;
  }
  return false;
}

}  // namespace

void encode_record(const Record& record, std::string& out) {
  const std::uint8_t flags = flags_of(record);
  const Attempt attempt = record.attempt.value_or(Attempt{});
  const bool is_asked_about = !record.provider.empty() || !record.sealed_key.empty();
  const auto moments_and_charge = static_cast<std::size_t>(
      std::popcount(static_cast<unsigned>(flags & ~(is_dispatched | has_request | is_contested))));
  const std::size_t size =
      fixed_bytes + 8 * moments_and_charge + framed_bytes(record.scope) +
      framed_bytes(record.operation) + framed_bytes(record.owner) +
      framed_bytes(record.recovery_point) + framed_bytes(record.last_error_code) +
      framed_bytes(record.upstream_reference) +
      (is_asked_about ? framed_bytes(record.provider) + framed_bytes(record.sealed_key) : 0);
  out.reserve(size + checksum_bytes);
  out.resize_and_overwrite(size, [&](char* bytes, std::size_t) {
    ByteWriter to(bytes);
    to.number(stored_record_version);
    to.number(static_cast<std::uint8_t>(record.state));
    to.number(static_cast<std::uint8_t>(record.lease_policy));
    to.number(static_cast<std::uint8_t>(record.release_basis.value_or(ReleaseBasis{})));
    to.number(flags);
    to.number(record.fingerprint.version);
    to.bytes(record.fingerprint.digest);
    to.number(attempt.fence);
    to.bytes(attempt.token.bytes);
    write(to, record.locked_until);
    write(to, record.retention);
    write(to, record.tombstone);
    write(to, record.created_at);
    write(to, record.changed_at);
    to.number(record.reconcile_attempts);
    to.number(record.generation);
    write(to, record.reconcile_after);
    write(to, record.completed_at);
    write(to, record.expires_at);
    write(to, record.tombstone_until);
    if (record.charged != 0) to.number(record.charged);
    to.framed(record.scope);
    to.framed(record.operation);
    to.framed(record.owner);
    to.framed(record.recovery_point);
    to.framed(record.last_error_code);
    to.framed(record.upstream_reference);
    if (is_asked_about) {
      to.framed(record.provider);
      to.framed(record.sealed_key);
    }
    return static_cast<std::size_t>(to.at() - bytes);
  });
  append_checksum(record.id, out);
}

std::expected<Record, std::string_view> decode_record(const RecordId& id, std::string_view bytes) {
  if (bytes.empty()) return std::unexpected("it is empty");
  if (static_cast<std::uint8_t>(bytes.front()) != stored_record_version) {
    return std::unexpected("it is of a version that this program does not know");
  }
  const auto sound = without_checksum(id, bytes);
  if (!sound) return std::unexpected(checksum_differs);
  MemberReader from(*sound);
  (void)from.in.number<std::uint8_t>();
  Record record;
  record.id = id;
  record.state = from.one_of_up_to(State::expired, "its state is none of ours");
  record.lease_policy = from.one_of_up_to(LeasePolicy::rerun, "its lease policy is none of ours");
  const auto basis = from.in.number<std::uint8_t>();
  if (basis > static_cast<std::uint8_t>(ReleaseBasis::declared)) {
    from.complain("its release basis is none of ours");
  } else if (basis != 0) {
    record.release_basis = static_cast<ReleaseBasis>(basis);
  }
  const auto flags = from.in.number<std::uint8_t>();
  record.dispatched = (flags & is_dispatched) != 0;
  record.is_contested = (flags & is_contested) != 0;
  if ((flags & has_request) != 0) record.stored_request.emplace();
  record.fingerprint.version = from.in.number<std::uint32_t>();
  from.in.bytes(record.fingerprint.digest);
  record.attempt = from.attempt();
  record.locked_until = from.moment();
  record.retention = from.length();
  record.tombstone = from.length();
  record.created_at = from.moment();
  record.changed_at = from.moment();
  record.reconcile_attempts = from.in.number<std::uint32_t>();
  record.generation = from.in.number<std::uint64_t>();
  from.moment_if((flags & has_reconcile_after) != 0, record.reconcile_after);
  from.moment_if((flags & has_completed_at) != 0, record.completed_at);
  from.moment_if((flags & has_expires_at) != 0, record.expires_at);
  from.moment_if((flags & has_tombstone_until) != 0, record.tombstone_until);
  if ((flags & is_counted) != 0) record.charged = from.charge();
  for (std::string* text : {&record.scope, &record.operation, &record.owner, &record.recovery_point,
                            &record.last_error_code, &record.upstream_reference}) {
    *text = from.in.framed();
  }
  if (!from.in.is_at_end()) {
    record.provider = from.in.framed();
    record.sealed_key = from.in.framed();
    if (record.provider.empty() && record.sealed_key.empty()) {
      from.complain("it has an empty provider and an empty sealed key");
    }
  }
  if (const auto why = from.complaint(); !why.empty()) return std::unexpected(why);
  if (!is_consistent(record)) return std::unexpected("it lacks a member that its state needs");
  return record;
}

}  // namespace idem
