#include "library/flow_input.hpp"

#include <gtest/gtest.h>

namespace idem::library {
namespace {

const RecordId of_record{{1, 2, 3}};

std::string packed() {
  return pack_input(
      {.method = "POST", .target = "/p", .headers = {{"A", "b"}}, .body = "{}", .scope = "acme"});
}

TEST(FlowInput, S16_S22_the_stored_form_is_read_for_its_record_only) {
  const std::string sealed = sealed_input(of_record, packed());
  const auto request = unpack_input(of_record, sealed);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->target, "/p");
  EXPECT_EQ(request->body, "{}");
  ASSERT_EQ(request->headers.size(), 1U);
  EXPECT_EQ(request->headers[0].value, "b");
  EXPECT_FALSE(unpack_input(RecordId{{9}}, sealed));
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    for (const int bit : {1, 2, 128}) {
      std::string damaged = sealed;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      EXPECT_FALSE(unpack_input(of_record, damaged)) << at << " " << bit;
    }
  }
  EXPECT_FALSE(unpack_input(of_record, packed())) << "without its checksum";
  EXPECT_FALSE(unpack_input(of_record, ""));
}

// Work that began under version 1, which had no checksum, goes on after an upgrade.
TEST(FlowInput, S16_the_form_of_an_older_version_is_read) {
  std::string older = packed();
  older[0] = 1;
  const auto request = unpack_input(of_record, older);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->scope, "acme");
}

}  // namespace
}  // namespace idem::library
