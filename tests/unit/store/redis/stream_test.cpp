#include "store/redis/stream.hpp"

#include <gtest/gtest.h>

namespace idem::redis {
namespace {

Task<void> look_up(Loop& loop, TlsContext context) {
  auto connecting = connect(loop, {"localhost", 1}, std::move(context), Millis(10'000));
  (void)co_await std::move(connecting);
}

TEST(RedisStream, a_look_up_of_a_name_ends_with_its_loop) {
  const auto context = make_tls_context({.on = true});
  ASSERT_TRUE(context);
  {
    Loop loop;
    loop.spawn(look_up(loop, *context));
    loop.post([&] { loop.stop(); });
    loop.run();
    EXPECT_EQ(context->use_count(), 2) << "the look-up has not begun";
  }
  EXPECT_EQ(context->use_count(), 1) << "its coroutine is still there";
}

}  // namespace
}  // namespace idem::redis
