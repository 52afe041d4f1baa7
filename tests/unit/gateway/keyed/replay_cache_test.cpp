#include "gateway/keyed/replay_cache.hpp"

#include <gtest/gtest.h>

namespace idem::test {
namespace {

using gateway::ReplayCache;
using Name = ReplayCache::Name;

constexpr Millis cached_at{1'000};

Name name(int number) {
  Name bytes{};
  bytes[0] = static_cast<std::uint8_t>(number);
  bytes[1] = static_cast<std::uint8_t>(number >> 8);
  return bytes;
}

ReplayCache::Kept kept(int status, std::string body, Millis until = cached_at + Millis(10)) {
  return {std::make_shared<const WireAnswer>(WireAnswer{status, {}, std::move(body)}), {}, until};
}

TEST(ReplayCache, it_returns_the_entries_put_in) {
  ReplayCache cache(1 << 20);
  EXPECT_EQ(cache.find(name(1), cached_at), nullptr);
  cache.put(name(1), kept(201, "one"));
  cache.put(name(2), kept(402, "two"));
  ASSERT_NE(cache.find(name(1), cached_at), nullptr);
  EXPECT_EQ(cache.find(name(1), cached_at)->answer->body, "one");
  EXPECT_EQ(cache.find(name(2), cached_at)->answer->body, "two");
  cache.put(name(1), kept(201, "again"));
  EXPECT_EQ(cache.find(name(1), cached_at)->answer->body, "again");
  cache.clear();
  EXPECT_EQ(cache.find(name(1), cached_at), nullptr);
}

TEST(ReplayCache, an_entry_is_not_returned_from_its_end_on) {
  ReplayCache cache(1 << 20);
  cache.put(name(1), kept(201, "one", cached_at + Millis(5)));
  EXPECT_NE(cache.find(name(1), cached_at + Millis(4)), nullptr);
  EXPECT_EQ(cache.find(name(1), cached_at + Millis(5)), nullptr);
}

// An operator may free a completed record with a stored 5xx, and no cache would notice.
TEST(ReplayCache, a_stored_server_error_is_never_kept) {
  ReplayCache cache(1 << 20);
  for (int status = 500; status < 600; ++status) cache.put(name(status), kept(status, "no"));
  for (int status = 500; status < 600; ++status) {
    EXPECT_EQ(cache.find(name(status), cached_at), nullptr) << status;
  }
}

TEST(ReplayCache, a_large_answer_is_not_kept) {
  ReplayCache cache(1 << 20);
  cache.put(name(1), kept(200, std::string(limits::replay_cache_answer_bytes_max + 1, 'x')));
  EXPECT_EQ(cache.find(name(1), cached_at), nullptr);
}

TEST(ReplayCache, it_stays_within_its_bytes_and_keeps_entries_in_use) {
  static constexpr std::size_t bytes_max = 256 * 1024;
  static constexpr std::size_t body = 1'000;
  ReplayCache cache(bytes_max);
  for (int i = 0; i < 2'000; ++i) {
    cache.put(name(i), kept(200, std::string(body, 'x')));
    ASSERT_NE(cache.find(name(0), cached_at), nullptr)
        << "name for all the time, yet gone at " << i;
  }
  std::size_t found = 0;
  for (int i = 0; i < 2'000; ++i) found += cache.find(name(i), cached_at) != nullptr;
  EXPECT_GT(found, bytes_max / 2 / (body + 400));
  EXPECT_LE(found, bytes_max / body);
}

}  // namespace
}  // namespace idem::test
