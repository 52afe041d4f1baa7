#include <fmt/format.h>

#include <string>
#include <vector>

#include "support/reconcile_operated.hpp"
#include "support/scripted_upstream.hpp"

/// Lists that end too early, or never: the lines of the unread pages would be
/// called missing.
namespace idem::test {
namespace {

class ReconcileList : public ReconcileOperated {
 protected:
  static constexpr int rounds_max = 10;  ///< Of a circle that nobody notices.

  Ran read_list(ScriptedUpstream& list, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"--url", "http://" + list.address() + "/list", "--by",
                                   "operation", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  /// Expects that it was not read whole, and the reason.
  static void expect_broken(const Ran& ran, const std::string& why) {
    EXPECT_EQ(ran.exit_code, 1) << ran.output;
    EXPECT_FALSE(report_of(ran)["complete"].boolean) << ran.output;
    EXPECT_NE(ran.output.find(why), std::string::npos) << ran.output;
  }
};

TEST_F(ReconcileList, a_page_with_an_unclear_next_link_is_not_the_last) {
  SharedText body;
  ScriptedUpstream list([&](UpstreamConnection& connection) {
    while (connection.read_request()) connection.write_answer(body.get());
  });
  for (const auto* next : {R"({"href":"/list?page=2"})", R"(["/list?page=2"])", "{}", "true"}) {
    body.set(fmt::format(R"({{"data":[],"next":{}}})", next));
    expect_broken(read_list(list), "is neither text nor null");
    body.set(fmt::format(R"({{"data":[],"meta":{{"next":{}}}}})", next));
    expect_broken(read_list(list, {"--next", "/meta/next"}), "is neither text nor null");
  }
  for (const auto* more :
       {R"("has_more":true)", R"("hasMore":true)", R"("next":null,"has_more":true)"}) {
    body.set(fmt::format(R"({{"data":[],{}}})", more));
    expect_broken(read_list(list), "announces another page");
    body.set(fmt::format(R"({{"data":[],"meta":{{{}}}}})", more));
    expect_broken(read_list(list, {"--next", "/meta/next"}), "announces another page");
  }
  body.set(R"({"data":[],"next":null,"has_more":false})");
  EXPECT_EQ(read_list(list).exit_code, 0);
}

TEST_F(ReconcileList, a_link_field_is_not_passed_over) {
  ScriptedUpstream list([](UpstreamConnection& connection) {
    const std::string_view field = "link: <https://api.example/list?page=2>; rel=\"next\"\r\n";
    while (connection.read_request()) {
      connection.write(fmt::format("HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\n[]", field));
    }
  });
  expect_broken(read_list(list, {"--items", ""}), "Link field");
}

// A -> B -> A was followed a million times.
TEST_F(ReconcileList, pages_that_go_in_a_circle_are_noticed) {
  ScriptedUpstream list([](UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      const bool is_second = request->target() == "/list?page=2";
      const char* next = is_second ? "/list" : "/list?page=2";
      if (connection.index() == rounds_max) next = "";
      connection.write_answer(fmt::format(R"({{"data":[],"next":"{}"}})", next));
    }
  });
  expect_broken(read_list(list), "page 2: its next page was read before");
  EXPECT_EQ(list.requests(), 2);
}

TEST_F(ReconcileList, a_cursor_that_comes_back_is_noticed) {
  ScriptedUpstream list([](UpstreamConnection& connection) {
    while (connection.read_request()) {
      connection.write_answer(connection.index() == rounds_max ? R"({"data":[]})"
                                                               : R"({"data":[],"next":7})");
    }
  });
  expect_broken(read_list(list, {"--next-parameter", "cursor"}),
                "page 2: its next page was read before");
  EXPECT_EQ(list.requests(), 2);
}

}  // namespace
}  // namespace idem::test
