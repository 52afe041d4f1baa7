#include "core/record/stored_record_codec.hpp"
#include "core/bytes/checksum.hpp"
#include "core/record/stored_response_codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <random>

/// How a record lies in a file: what comes back is what was written, or is refused.
namespace idem::test {
namespace {

std::string encoded(const Record& record) {
  std::string bytes = "what was there before";
  encode_record(record, bytes);
  return bytes;
}

const RecordId nobody{};

/// Its bytes before the checksum, and such bytes with theirs: for what only a program that writes
/// other records could have written.
std::string without(std::string bytes) {
  bytes.resize(bytes.size() - checksum_bytes);
  return bytes;
}
std::string sealed(std::string bytes) {
  append_checksum(nobody, bytes);
  return bytes;
}

/// The codec's view: members are compared by what they are encoded to, the others one by one.
void expect_same(const Record& a, const Record& b) {
  EXPECT_EQ(encoded(a), encoded(b));
  EXPECT_EQ(a.scope, b.scope);
  EXPECT_EQ(a.operation, b.operation);
  EXPECT_EQ(a.generation, b.generation);
  EXPECT_EQ(a.fingerprint.version, b.fingerprint.version);
  EXPECT_EQ(a.fingerprint.digest, b.fingerprint.digest);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.attempt, b.attempt);
  EXPECT_EQ(a.owner, b.owner);
  EXPECT_EQ(a.locked_until, b.locked_until);
  EXPECT_EQ(a.dispatched, b.dispatched);
  EXPECT_EQ(a.lease_policy, b.lease_policy);
  EXPECT_EQ(a.retention, b.retention);
  EXPECT_EQ(a.tombstone, b.tombstone);
  EXPECT_EQ(a.charged, b.charged);
  EXPECT_EQ(a.is_contested, b.is_contested);
  EXPECT_EQ(a.recovery_point, b.recovery_point);
  EXPECT_EQ(a.stored_request.has_value(), b.stored_request.has_value());
  EXPECT_EQ(a.release_basis, b.release_basis);
  EXPECT_EQ(a.last_error_code, b.last_error_code);
  EXPECT_EQ(a.reconcile_after, b.reconcile_after);
  EXPECT_EQ(a.reconcile_attempts, b.reconcile_attempts);
  EXPECT_EQ(a.upstream_reference, b.upstream_reference);
  EXPECT_EQ(a.provider, b.provider);
  EXPECT_EQ(a.sealed_key, b.sealed_key);
  EXPECT_EQ(a.created_at, b.created_at);
  EXPECT_EQ(a.changed_at, b.changed_at);
  EXPECT_EQ(a.completed_at, b.completed_at);
  EXPECT_EQ(a.expires_at, b.expires_at);
  EXPECT_EQ(a.tombstone_until, b.tombstone_until);
}

constexpr std::int64_t millis_max = std::int64_t{1} << 60;

StoreTime a_moment() {
  return StoreTime(Millis(*rc::gen::oneOf(rc::gen::inRange(-millis_max, millis_max + 1),
                                          rc::gen::just(millis_max), rc::gen::just(-millis_max))));
}

std::optional<StoreTime> perhaps_a_moment(bool needed) {
  if (!needed && *rc::gen::arbitrary<bool>()) return std::nullopt;
  return a_moment();
}

template <std::size_t N>
std::array<std::uint8_t, N> some_bytes() {
  return *rc::gen::container<std::array<std::uint8_t, N>>(rc::gen::arbitrary<std::uint8_t>());
}

std::string a_text() { return *rc::gen::arbitrary<std::string>(); }

/// Any record that its state allows.
Record a_record() {
  Record record;
  record.state = static_cast<State>(*rc::gen::inRange(1, 7));
  const bool ended = record.state == State::completed || record.state == State::expired;
  const bool expires =
      ended || record.state == State::pending || record.state == State::failed_retryable;
  record.scope = a_text();
  record.operation = a_text();
  record.generation = *rc::gen::arbitrary<std::uint64_t>();
  record.fingerprint = {*rc::gen::arbitrary<std::uint32_t>(), some_bytes<32>()};
  const bool has_run = record.state == State::in_progress || record.state == State::unknown;
  if (has_run || *rc::gen::arbitrary<bool>()) {
    record.attempt = Attempt{*rc::gen::arbitrary<std::uint64_t>() | 1, {some_bytes<16>()}};
  }
  record.owner = a_text();
  record.locked_until = a_moment();
  record.dispatched = *rc::gen::arbitrary<bool>();
  record.lease_policy = static_cast<LeasePolicy>(*rc::gen::inRange(1, 4));
  record.retention = Millis(*rc::gen::inRange<std::int64_t>(0, millis_max + 1));
  record.tombstone = Millis(*rc::gen::inRange<std::int64_t>(0, millis_max + 1));
  if (*rc::gen::arbitrary<bool>()) {
    record.charged = *rc::gen::inRange<std::uint64_t>(1, (std::uint64_t{1} << 40) + 1);
  }
  record.is_contested = *rc::gen::arbitrary<bool>();
  record.recovery_point = a_text();
  if (record.state == State::pending || *rc::gen::arbitrary<bool>())
    record.stored_request.emplace();
  if (const int basis = *rc::gen::inRange(0, 3); basis != 0) {
    record.release_basis = static_cast<ReleaseBasis>(basis);
  }
  record.last_error_code = a_text();
  record.reconcile_after = perhaps_a_moment(false);
  record.reconcile_attempts = *rc::gen::arbitrary<std::uint32_t>();
  record.upstream_reference = a_text();
  record.provider = a_text();
  record.sealed_key = a_text();
  record.created_at = a_moment();
  record.changed_at = a_moment();
  record.completed_at = perhaps_a_moment(ended);
  record.expires_at = perhaps_a_moment(expires);
  record.tombstone_until = perhaps_a_moment(ended);
  return record;
}

Record a_completed_record() {
  Record record;
  record.state = State::completed;
  record.scope = "tenant-17";
  record.operation = "POST /v1/payments";
  record.attempt = Attempt{7, {}};
  record.owner = "node-1";
  record.upstream_reference = "ref-1";
  const StoreTime moment(Millis(1'800'000'000'000));
  record.locked_until = record.created_at = record.changed_at = moment;
  record.completed_at = record.expires_at = record.tombstone_until = moment;
  record.release_basis = ReleaseBasis::declared;
  return record;
}

RC_GTEST_PROP(StoredRecord, T30_comes_back_as_it_was, ()) {
  const Record record = a_record();
  const auto decoded = decode_record(nobody, encoded(record));
  RC_ASSERT(decoded.has_value());
  expect_same(*decoded, record);
  RC_ASSERT(!decoded->stored_request || decoded->stored_request->empty());
}

RC_GTEST_PROP(StoredRecord, T30_cut_anywhere_or_with_a_byte_more_is_refused, ()) {
  const std::string bytes = encoded(a_record());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy of its own, so that reading past the end is reading past an allocation.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    RC_ASSERT(!decode_record(nobody, {cut.data(), cut.size()}).has_value());
  }
  RC_ASSERT(!decode_record(nobody, bytes + '\0').has_value());
}

TEST(StoredRecord, T30_any_bytes_are_refused_or_decode_to_a_record_that_encodes_to_them) {
  std::mt19937_64 random(30);
  const std::string sound = without(encoded(a_completed_record()));
  int decoded_ones = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string bytes = sound;
    for (std::uint64_t flips = random() % 4; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 4), '\xff');
    bytes = sealed(std::move(bytes));
    const auto record = decode_record(nobody, bytes);
    if (!record) {
      EXPECT_FALSE(record.error().empty());
      continue;
    }
    ++decoded_ones;
    EXPECT_EQ(encoded(*record), bytes) << "one record, one form";
  }
  EXPECT_GT(decoded_ones, 1'000);
}

// §22: damage is never a replay, nor another record.
TEST(StoredRecord, S22_each_changed_bit_is_found_and_so_is_another_records_row) {
  Record record = a_completed_record();
  record.id.bytes[3] = 7;
  const std::string bytes = encoded(record);
  ASSERT_TRUE(decode_record(record.id, bytes));
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_FALSE(decode_record(record.id, changed)) << bit;
  }
  EXPECT_EQ(decode_record(nobody, bytes).error(), checksum_differs);
}

TEST(StoredRecord, S22_each_changed_bit_of_an_answer_is_found) {
  const RecordId id{{1, 2, 3}};
  StoredResponse response{201, {{"Content-Type", "application/json"}, {"A", ""}}, "{\"id\": 7}"};
  std::string bytes;
  encode_checked_answer(id, response, bytes);
  EXPECT_EQ(decode_checked_answer(id, bytes, response.body), response);
  EXPECT_FALSE(decode_checked_answer(nobody, bytes, response.body)) << "another record's";
  EXPECT_FALSE(decode_checked_answer(id, bytes, "")) << "its body is gone";
  for (std::string* const part : {&bytes, &response.body}) {
    for (std::size_t bit = 0; bit < 8 * part->size(); ++bit) {
      (*part)[bit / 8] ^= static_cast<char>(1 << bit % 8);
      EXPECT_FALSE(decode_checked_answer(id, bytes, response.body)) << bit;
      (*part)[bit / 8] ^= static_cast<char>(1 << bit % 8);
    }
  }
}

std::string complaint_about(std::string bytes) {
  const auto record = decode_record(nobody, sealed(std::move(bytes)));
  return record ? "none" : std::string(record.error());
}

TEST(StoredRecord, T30_the_provider_is_written_only_where_there_is_one) {
  Record record = a_completed_record();
  const std::size_t size = encoded(record).size();
  record.sealed_key = "sealed";
  EXPECT_EQ(encoded(record).size(), size + 4 + 4 + 6);
  const auto decoded = decode_record(nobody, encoded(record));
  ASSERT_TRUE(decoded) << decoded.error();
  expect_same(*decoded, record);
  const std::string of_nobody = without(encoded(a_completed_record()));
  EXPECT_EQ(complaint_about(of_nobody + std::string(7, '\0')), "it is cut short");
  EXPECT_EQ(complaint_about(of_nobody + std::string(8, '\0')),
            "it has an empty provider and an empty sealed key");
}

TEST(StoredRecord, T30_a_form_that_we_do_not_write_is_refused_by_name) {
  const std::string sound = without(encoded(a_completed_record()));
  const auto with = [&](std::size_t at, int byte) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(byte);
    return complaint_about(bytes);
  };
  for (const int other : {0, 1, 2, 3, stored_record_version + 1}) {
    EXPECT_EQ(with(0, other), "it is of a version that this program does not know");
  }
  for (const int none : {0, 7, 255}) EXPECT_EQ(with(1, none), "its state is none of ours");
  for (const int none : {0, 4, 255}) EXPECT_EQ(with(2, none), "its lease policy is none of ours");
  for (const int none : {3, 255}) EXPECT_EQ(with(3, none), "its release basis is none of ours");
  EXPECT_EQ(with(4, 0x80 | sound[4]), "none") << "each flag means something";
  constexpr std::size_t fence = 5 + 4 + 32;
  EXPECT_EQ(with(fence, 0), "none") << "nobody ever ran it";
  std::string token_alone = sound;
  token_alone[fence] = 0;
  token_alone[fence + 8] = 1;
  EXPECT_EQ(complaint_about(token_alone), "its attempt has a token and no fence");
  constexpr std::size_t locked_until = fence + 8 + 16;
  EXPECT_EQ(with(locked_until + 7, 0x7f), "a moment of it is out of bounds");
  EXPECT_EQ(with(locked_until + 8 + 7, 0xff), "a length of it is out of bounds");
  EXPECT_EQ(decode_record(nobody, "").error(), "it is empty");
  EXPECT_EQ(complaint_about(sound.substr(0, 40)), "it is cut short");
  EXPECT_EQ(complaint_about(sound + std::string(8, '\0') + "x"), "bytes follow its end");
}

TEST(StoredRecord, T30_a_record_without_the_fields_of_its_state_is_refused) {
  const std::string lacks = "it lacks a member that its state needs";
  const auto complaint = [](const auto& change) {
    Record record = a_completed_record();
    change(record);
    return complaint_about(without(encoded(record)));
  };
  const auto as = [&](State state, const auto& change) {
    return complaint([&](Record& record) {
      record.state = state;
      change(record);
    });
  };
  for (const State state : {State::completed, State::expired}) {
    EXPECT_EQ(as(state, [](Record&) {}), "none");
    EXPECT_EQ(as(state, [](Record& record) { record.completed_at.reset(); }), lacks);
    EXPECT_EQ(as(state, [](Record& record) { record.expires_at.reset(); }), lacks);
    EXPECT_EQ(as(state, [](Record& record) { record.tombstone_until.reset(); }), lacks);
  }
  for (const State state : {State::in_progress, State::unknown}) {
    EXPECT_EQ(as(state, [](Record&) {}), "none");
    EXPECT_EQ(as(state, [](Record& record) { record.attempt.reset(); }), lacks);
  }
  EXPECT_EQ(as(State::failed_retryable, [](Record& record) { record.expires_at.reset(); }), lacks);
  EXPECT_EQ(as(State::pending, [](Record&) {}), lacks) << "no request";
  EXPECT_EQ(as(State::pending, [](Record& record) { record.stored_request.emplace(); }), "none");
}

}  // namespace
}  // namespace idem::test
