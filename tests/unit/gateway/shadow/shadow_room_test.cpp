#include "gateway/shadow/shadow_room.hpp"
#include "gateway/kept_head.hpp"
#include "unit/http/request_parsing.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <gtest/gtest.h>

namespace idem::gateway {
namespace {

TEST(ShadowRoom, S22_bounds_the_observations_and_the_memory_of_their_copies) {
  ShadowRoom room;
  for (std::size_t i = 0; i < limits::shadow_observations_max; ++i) ASSERT_TRUE(room.take_place());
  EXPECT_FALSE(room.take_place());
  EXPECT_EQ(room.under_way(), limits::shadow_observations_max);
  room.give_place();
  EXPECT_TRUE(room.take_place());

  EXPECT_TRUE(room.take_bytes(limits::shadow_bytes_max - 10));
  EXPECT_FALSE(room.take_bytes(11));
  EXPECT_FALSE(room.take_bytes(static_cast<std::size_t>(-1)));
  EXPECT_TRUE(room.take_bytes(10));
  EXPECT_FALSE(room.take_bytes(1));
  room.give_bytes(10);
  EXPECT_TRUE(room.take_bytes(1));
}

TEST(ShadowTurns, S22_a_request_waits_for_the_turns_that_were_taken_before_it) {
  Turns turns;
  RecordId id;
  id.bytes[0] = 7;
  EXPECT_TRUE(turns.taken(id).empty());
  const auto first = turns.take(id);
  const auto before = turns.taken(id);
  const auto second = turns.take(id);
  ASSERT_EQ(before.size(), 1U);
  int called = 0;
  turns.when_over(before[0], [&] { ++called; });
  turns.end(id, second);
  EXPECT_EQ(called, 0);
  turns.end(id, first);
  EXPECT_EQ(called, 1);
  turns.when_over(before[0], [&] { ++called; });
  EXPECT_EQ(called, 2) << "it is over already";
  EXPECT_TRUE(turns.taken(id).empty());
  RecordId other;
  other.bytes[0] = 8;
  (void)turns.take(other);
  EXPECT_TRUE(turns.taken(id).empty()) << "another key's";
}

TEST(ShadowTurns, S22_one_key_has_a_bounded_number_of_them) {
  Turns turns;
  RecordId id;
  id.bytes[0] = 7;
  Turns::Taken all;
  for (std::size_t i = 0; i < limits::shadow_turns_max; ++i) all.push_back(turns.take(id));
  EXPECT_TRUE(all.back());
  EXPECT_FALSE(turns.take(id)) << "a key that is always the same would fill the memory";
  EXPECT_EQ(turns.taken(id).size(), limits::shadow_turns_max);
  EXPECT_TRUE(turns.take({})) << "another key's";
  EXPECT_FALSE(turns.is_over(*all[0]));
  turns.end(id, all[0]);
  EXPECT_TRUE(turns.is_over(*all[0]));
  EXPECT_TRUE(turns.take(id));
}

TEST(ShadowTurns, S22_closing_drops_what_waits) {
  Turns turns;
  const auto end = turns.take({});
  const auto alive = std::make_shared<int>(0);
  turns.when_over(end, [alive, end] { FAIL(); });
  turns.close();
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(KeptHead, S22_outlives_the_bytes_that_it_was_read_from) {
  using http::test_requests::parse;
  using http::test_requests::request;
  std::unique_ptr<KeptHead> kept;
  std::size_t bytes = 0;
  {
    auto parsed = parse(request({"X-Tenant-Id: acme", "Content-Length: 7", "Content-Type: a/b"},
                                "POST /pay?x=1 HTTP/1.1"));
    ASSERT_TRUE(parsed.complete);
    bytes = KeptHead::bytes_of(parsed.head);
    kept = std::make_unique<KeptHead>(parsed.head);
    auto& buffer = const_cast<std::string&>(*parsed.buffer);
    std::fill(buffer.begin(), buffer.end(), '!');
  }
  const auto& head = kept->head();
  EXPECT_EQ(kept->bytes(), bytes);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.origin_form, "/pay?x=1");
  EXPECT_EQ(head.content_length, 7U);
  ASSERT_EQ(head.fields.size(), 4U);
  EXPECT_EQ(head.fields[1].name, "X-Tenant-Id");
  EXPECT_EQ(head.fields[1].value, "acme");
  EXPECT_EQ(head.fields[3].known, http::FieldName::content_type);
}

}  // namespace
}  // namespace idem::gateway
