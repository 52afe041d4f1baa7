#include "gateway/background/search_index.hpp"

#include "gateway/keyed/waiters.hpp"
#include "store/stores.hpp"

#include <idem/search_limits.hpp>
#include <idem/store_wait.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

/// Which values of requests and answers are indexed, and what becomes of the others.
namespace idem::gateway {
namespace {

using metrics::NotIndexed;

constexpr auto patience = std::chrono::seconds(20);

/// A store that refuses each append while `refuses` is set.
class Refusing final : public Store {
 public:
  void call(StoreCall what, StoreCompletion done) override {
    if (refuses.load() && std::holds_alternative<AppendLine>(what)) {
      return inner_->call(Count{}, [done = std::move(done)](const StoreResult&) mutable {
        done(std::unexpected(StoreError{StoreError::Code::refused, "by the test"}));
      });
    }
    inner_->call(std::move(what), std::move(done));
  }
  void watch(std::shared_ptr<Watcher> watcher) override { inner_->watch(std::move(watcher)); }
  const Identity& identity() const noexcept override { return inner_->identity(); }

  void close() { inner_.reset(); }

  std::atomic<bool> refuses{false};

 private:
  std::unique_ptr<Store> inner_ = std::move(open_memory({}).value());
};

SearchSettings::Place place(const std::string& pointer) {
  return {pointer, JsonPointer::parse(pointer).value()};
}

RecordId ref(std::uint8_t number) {
  RecordId id;
  id.bytes[0] = number;
  return id;
}

class SearchIndexes : public testing::Test {
 protected:
  SearchIndexes() {
    settings_->search = SearchSettings{{place("/order_id"), place("/cart/0/sku"), place("/a~1b")},
                                       {place("/id"), place("/status")}};
    index_ = make_search_index(loop_, shared_, settings_);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~SearchIndexes() override {
    loop_.stop();
    thread_.join();
    store_.close();  // As the gateway does: the loop is still there for its last replies.
  }

  /// What each of them is to the record.
  std::vector<std::string> kinds(const std::vector<Findable>& values) {
    std::vector<std::string> all;
    for (const auto& one : values) all.push_back(one.found_by);
    return all;
  }
  std::vector<std::string> in_request(std::string_view body) {
    return kinds(index_->in_request(*settings_, {}, body));
  }
  bool has(const std::vector<Findable>& values, std::string_view found_by, std::string_view value) {
    const FindName name = find_name(store_.identity().secret, value);
    return std::ranges::any_of(
        values, [&](const Findable& one) { return one.found_by == found_by && one.name == name; });
  }
  std::uint64_t dropped(NotIndexed reason) { return registry_.search().count(reason); }

  void until_drained() {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!index_->drained() && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
    }
    ASSERT_TRUE(index_->drained());
  }
  std::vector<JournalSummary> journals() {
    return ask_and_wait(store_, ListJournals{std::string(find_journals), {}, 1'000}).value();
  }
  Complete completion(std::string body, bool is_stored = true) {
    Complete verb;
    verb.response = {201, {}, std::move(body), is_stored};
    return verb;
  }

  Refusing store_;
  std::unique_ptr<http::SpillSpace> spill_ =
      std::move(http::SpillSpace::open(std::filesystem::temp_directory_path()).value());
  metrics::Registry registry_{metrics::TenantLabel::off, Secret{}};
  Observing observing_{registry_, {}};
  GatewayShared shared_{store_, *spill_, nullptr, observing_};
  std::shared_ptr<GatewaySettings> settings_ = std::make_shared<GatewaySettings>();
  Route route_;
  Loop loop_;
  std::unique_ptr<SearchIndex> index_;
  std::thread thread_;
};

using Kinds = std::vector<std::string>;

TEST_F(SearchIndexes, values_of_a_request_are_texts_of_its_scalars) {
  const auto values = index_->in_request(
      *settings_, {}, R"({"order_id":"A-1","cart":[{"sku":12.50}],"a/b":true,"amount":1})");
  ASSERT_EQ(values.size(), 3U) << "and no others";
  EXPECT_TRUE(has(values, "request /order_id", "A-1"));
  EXPECT_TRUE(has(values, "request /cart/0/sku", "12.50")) << "a number as it is written";
  EXPECT_TRUE(has(values, "request /a~1b", "true"));
  EXPECT_TRUE(has(index_->in_request(*settings_, {}, R"({"order_id":"\u00e4/\ud83d\ude00"})"),
                  "request /order_id", "ä/😀"))
      << "as a reader sees it, however it was spelled";
}

TEST_F(SearchIndexes, what_is_no_value_is_left_out_without_a_count) {
  for (const auto* body : {R"({"order_id":null})", R"({"order_id":{"x":1}})", R"({"order_id":[1]})",
                           R"({"order_id":""})", R"({"other":1})", "[]", "1", ""}) {
    EXPECT_EQ(in_request(body), Kinds{}) << body;
  }
  for (std::size_t i = 0; i < metrics::not_indexed_count; ++i) {
    EXPECT_EQ(dropped(static_cast<NotIndexed>(i)), 0U) << i;
  }
}

TEST_F(SearchIndexes, what_cannot_be_indexed_is_counted) {
  std::uint64_t no_json = 0;
  for (const auto* body : {"order_id=1", R"({"order_id":1)", R"({"order_id":1,"order_id":2})",
                           "{\"order_id\":\"\xff\"}", "\xef\xbb\xbf{}"}) {
    EXPECT_EQ(in_request(body), Kinds{}) << body;
    EXPECT_EQ(dropped(NotIndexed::body_no_json), ++no_json) << body;
  }
  const std::string deep(100'000, '[');
  EXPECT_EQ(in_request(deep.substr(0, 10'000)), Kinds{});
  EXPECT_EQ(dropped(NotIndexed::body_no_json), ++no_json);

  const std::string longest(limits::search_value_bytes_max, 'x');
  EXPECT_EQ(in_request(R"({"order_id":")" + longest + R"("})").size(), 1U);
  EXPECT_EQ(in_request(R"({"order_id":"x)" + longest + R"("})"), Kinds{});
  EXPECT_EQ(dropped(NotIndexed::value_too_long), 1U);

  const std::string megabyte(1024UL * 1024, ' ');
  EXPECT_EQ(in_request(R"({"order_id":1})" + megabyte), Kinds{});
  EXPECT_EQ(in_request(deep), Kinds{});
  EXPECT_EQ(dropped(NotIndexed::body_too_large), 2U);
}

TEST_F(SearchIndexes, the_trace_and_the_upstreams_reference_are_indexed_whatever_the_body_is) {
  const auto parent =
      parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").value();
  EXPECT_TRUE(has(index_->in_request(*settings_, parent.trace, "no JSON"), "trace_id",
                  "4bf92f3577b34da6a3ce929d0e0e4736"));
  Complete complete = completion(R"({"id":"ch_1","status":"paid"})");
  complete.upstream_reference = "ref-1";
  const auto values = index_->in_ending(*settings_, complete);
  EXPECT_EQ(kinds(values), (Kinds{"upstream_reference", "answer /id", "answer /status"}));
  EXPECT_TRUE(has(values, "upstream_reference", "ref-1"));
  EXPECT_TRUE(has(values, "answer /id", "ch_1"));
  MarkUnknown unknown;
  unknown.upstream_reference = "ref-2";
  EXPECT_TRUE(has(index_->in_ending(*settings_, unknown), "upstream_reference", "ref-2"));
  EXPECT_TRUE(index_->in_ending(*settings_, Release{}).empty());
}

TEST_F(SearchIndexes, an_answer_that_is_not_kept_is_not_read) {
  EXPECT_TRUE(index_->in_ending(*settings_, completion("", false)).empty());
  EXPECT_EQ(dropped(NotIndexed::body_not_kept), 1U);
}

TEST_F(SearchIndexes, without_the_setting_nothing_is_read_or_written) {
  GatewaySettings off;
  EXPECT_TRUE(index_->in_request(off, TraceId{}, R"({"order_id":1})").empty());
  EXPECT_TRUE(index_->in_ending(off, completion(R"({"id":1})")).empty());
  index_->add(ref(1), route_, {});
  EXPECT_TRUE(index_->drained());
}

TEST_F(SearchIndexes, a_value_is_written_once_for_each_record) {
  const auto values = index_->in_request(*settings_, {}, R"({"order_id":"A-1"})");
  for (int i = 0; i < 3; ++i) index_->add(ref(1), route_, values);
  index_->add(ref(2), route_, values);
  until_drained();
  const auto all = journals();
  ASSERT_EQ(all.size(), 1U);
  // Two that are written at the same time may both be there: a search shows one.
  const auto lines = ask_and_wait(store_, ReadLines{all[0].name}).value().lines;
  std::set<std::string> texts;
  for (const auto& line : lines) texts.insert(line.bytes);
  EXPECT_EQ(texts, (std::set{FindLine{ref(1), "request /order_id"}.text(),
                             FindLine{ref(2), "request /order_id"}.text()}));
  EXPECT_EQ(day_of_find_journal(all[0].name).size(), 8U);
}

TEST_F(SearchIndexes, a_value_that_many_records_have_is_bounded) {
  const auto values = index_->in_request(*settings_, {}, R"({"order_id":"same"})");
  constexpr auto many = static_cast<std::uint8_t>(limits::search_lines_max + 20);
  for (std::uint8_t i = 0; i < many; ++i) {
    index_->add(ref(i), route_, values);
    until_drained();
  }
  ASSERT_EQ(journals().size(), 1U);
  EXPECT_EQ(journals()[0].last, limits::search_lines_max + 1) << "one more: there are others";
  EXPECT_EQ(dropped(NotIndexed::value_common), many - limits::search_lines_max - 1);
}

TEST_F(SearchIndexes, a_store_that_fails_costs_values_and_nothing_else) {
  store_.refuses = true;
  index_->add(ref(1), route_, index_->in_request(*settings_, {}, R"({"order_id":1})"));
  until_drained();
  EXPECT_EQ(dropped(NotIndexed::store_failed), 1U);
  store_.refuses = false;
  index_->add(ref(1), route_, index_->in_request(*settings_, {}, R"({"order_id":1})"));
  until_drained();
  EXPECT_EQ(journals().size(), 1U);
}

TEST_F(SearchIndexes, what_waits_is_bounded) {
  const std::vector<Findable> one{{FindName{}, "trace_id"}};
  std::vector<Findable> many(limits::search_waiting_max + 5, one.front());
  index_->add(ref(1), route_, std::move(many));
  EXPECT_EQ(dropped(NotIndexed::waiting_full), 5U);
  until_drained();
}

TEST_F(SearchIndexes, orders_are_indexed_with_the_answer_that_they_store) {
  Reserve reserve;
  reserve.id = ref(7);
  reserve.fingerprints = {Fingerprint{3, {}}};
  reserve.token = random_token();
  reserve.scope = "acme";
  reserve.operation = "POST /";
  reserve.lease = Millis(60'000);
  reserve.retention = reserve.tombstone = Millis(60'000);
  reserve.generation = store_.identity().generation;
  const auto outcome = ask_and_wait(store_, reserve);
  ASSERT_TRUE(outcome && std::holds_alternative<Execute>(*outcome));
  const auto attempt = std::get<Execute>(*outcome).attempt;
  const auto lost = ask_and_wait(store_, MarkUnknown{ref(7), attempt, "lost", {}, {}});
  ASSERT_TRUE(lost) << lost.error().detail;
  ASSERT_EQ(lost->verdict, Verdict::done);
  Resolve order;
  order.id = ref(8);
  order.fence = attempt.fence;
  order.response = StoredResponse{201, {}, R"({"id":"ch_7"})", true};
  order.source = "test";
  ASSERT_TRUE(ask_and_wait(index_->indexed(), order));
  until_drained();
  EXPECT_TRUE(journals().empty()) << "there is no such record";
  order.id = ref(7);
  const auto done = ask_and_wait(index_->indexed(), order);
  ASSERT_TRUE(done) << done.error().detail;
  ASSERT_EQ(done->verdict, Resolve::Verdict::done);
  until_drained();
  ASSERT_EQ(journals().size(), 1U);
  EXPECT_TRUE(journals()[0].name.ends_with(to_hex(find_name(store_.identity().secret, "ch_7"))));
}

/// The lines that say which values are indexed.
class SearchNotes : public SearchIndexes {
 protected:
  std::vector<FindNote> notes(std::size_t count) {
    const auto until = std::chrono::steady_clock::now() + patience;
    std::vector<FindNote> all;
    while (std::chrono::steady_clock::now() < until) {
      all.clear();
      const auto read = ask_and_wait(store_, ReadLines{std::string(find_notes)}).value();
      for (const auto& line : read.lines) all.push_back(FindNote::parse(line.bytes));
      if (all.size() >= count) break;
    }
    return all;
  }
};

TEST_F(SearchNotes, say_what_is_indexed_and_that_it_ended) {
  const FindNote first{true, {"/order_id", "/cart/0/sku", "/a~1b"}, {"/id", "/status"}};
  EXPECT_EQ(notes(1), std::vector{first});
  auto same = std::make_shared<GatewaySettings>(*settings_);
  index_->use(same);
  auto other = std::make_shared<GatewaySettings>(*settings_);
  other->search->answers.clear();
  index_->use(other);
  const FindNote second{true, first.requests, {}};
  EXPECT_EQ(notes(2), (std::vector{first, second})) << "the same settings get no line";
  index_->use(std::make_shared<GatewaySettings>());
  EXPECT_EQ(notes(3), (std::vector{first, second, FindNote{}}));
}

}  // namespace
}  // namespace idem::gateway
