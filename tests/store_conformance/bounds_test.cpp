#include "store/store_copy.hpp"
#include "store_conformance/asking.hpp"
#include "support/bulk.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

/// The largest values that Idem lets through, and the longest texts that it makes: every store
/// keeps them as they are, so that no request is refused by one store and served by another.
namespace idem::test {
namespace {

// Texts of services and of failures have no bound in the store port; the SQL faces have this one.
constexpr std::size_t service_text_bytes_max = 8'192;

/// All bytes that a header field or a request line can have, quotes and backslashes among them.
std::string text_of_bytes(std::size_t bytes, std::string start = {}, unsigned values = 94) {
  while (start.size() < bytes) start += static_cast<char>('!' + start.size() % values);
  return start;
}

std::string any_bytes(std::size_t bytes) {
  std::string block(65'521, '\0');  // A prime, so that no part of a body is at another's place.
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 7 + i / 251);
  std::string body;
  body.reserve(bytes + block.size());
  while (body.size() < bytes) body += block;
  body.resize(bytes);
  return body;
}

const std::string longest_scope = text_of_bytes(limits::scope_bytes_max, "tenant ", 222);
const std::string longest_operation = text_of_bytes(limits::request_line_bytes_max, "POST /");
const std::string longest_text = text_of_bytes(service_text_bytes_max);

StoredResponse largest_head(std::string body) {
  StoredResponse stored{200, {}, std::move(body)};
  const std::size_t each = limits::head_bytes_max / limits::head_fields_max;
  for (std::size_t i = 0; i < limits::head_fields_max; ++i) {
    std::string name = "X-Field-" + std::to_string(i);
    const std::size_t left = each - name.size() - std::string_view(": \r\n").size();
    stored.headers.push_back({std::move(name), text_of_bytes(left)});
  }
  return stored;
}

class Bounds : public StoreConformance {
 protected:
  static Reserve widest(int key_number) {
    Reserve verb = a_reserve(key_number);
    verb.scope = longest_scope;
    verb.operation = longest_operation;
    verb.owner = longest_text;
    verb.provider = text_of_bytes(limits::operation_bytes_max);
    verb.sealed_key = any_bytes(limits::key_bytes_max + 128);
    return verb;
  }
  /// One record in each state, numbered from 1 to 6.
  static void fill(Store& store) {
    const auto ask = [&](auto verb) {
      auto reply = test::try_ask(store, std::move(verb));
      EXPECT_TRUE(reply) << reply.error().detail;
      return reply ? std::move(*reply) : typename decltype(verb)::Reply{};
    };
    const auto run = [&](int number) {
      const auto outcome = ask(widest(number));
      EXPECT_TRUE(is<Execute>(outcome)) << describe(outcome);
      return is<Execute>(outcome) ? std::get<Execute>(outcome) : Execute{};
    };
    Complete complete = a_complete(run(1), largest_head("it ran"));
    complete.upstream_reference = longest_text;
    EXPECT_EQ(ask(complete).verdict, Verdict::done);
    MarkUnknown unknown = a_mark_unknown(run(2));
    unknown.error_code = longest_text;
    unknown.upstream_reference = longest_text;
    EXPECT_EQ(ask(unknown).verdict, Verdict::done);
    Release release = a_release(run(3));
    release.error_code = longest_text;
    EXPECT_EQ(ask(release).verdict, Verdict::done);
    const Execute fourth = run(4);
    EXPECT_EQ(ask(Advance{fourth.id, fourth.attempt, longest_text}).verdict, Verdict::done);
    Accept accept = an_accept(5, any_bytes(100'000));
    accept.as = widest(5);
    accept.as.generation = store.identity().generation;
    EXPECT_TRUE(is<Pending>(ask(accept)));
    const Execute sixth = run(6);
    EXPECT_EQ(ask(a_mark_unknown(sixth)).verdict, Verdict::done);
    Resolve resolve = a_resolve(6, Resolve::As::completed, sixth.attempt.fence);
    resolve.source = "operator:" + text_of_bytes(limits::operator_name_bytes_max);
    resolve.evidence = text_of_bytes(limits::evidence_bytes_max);
    resolve.reason = text_of_bytes(limits::reason_bytes_max);
    EXPECT_EQ(ask(resolve).verdict, Resolve::Verdict::done);
  }
  std::vector<std::string> snapshots() {
    std::vector<std::string> all;
    for (int number = 1; number <= 6; ++number) all.push_back(snapshot(number));
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, Bounds,
                         stores_and({"sharded:", "postgres_pooled:", "redis_cluster:", "hybrid:",
                                     "hybrid_mysql:", "sealed_sqlite:"}),
                         name_of_store);

TEST_P(Bounds, S02_the_longest_names_and_texts_are_kept_in_every_state) {
  fill(store());
  ASSERT_FALSE(HasFailure());
  for (int number = 1; number <= 6; ++number) {
    const auto record = find(number);
    ASSERT_TRUE(record) << number;
    EXPECT_EQ(record->scope, longest_scope) << number;
    EXPECT_EQ(record->operation, longest_operation) << number;
  }
  EXPECT_EQ(find(1)->upstream_reference, longest_text);
  EXPECT_EQ(find(2)->last_error_code, longest_text);
  EXPECT_EQ(find(2)->upstream_reference, longest_text);
  EXPECT_EQ(find(2)->sealed_key, widest(2).sealed_key);
  EXPECT_EQ(find(2)->provider, widest(2).provider);
  EXPECT_EQ(find(2)->owner, longest_text);
  EXPECT_EQ(find(3)->last_error_code, longest_text);
  EXPECT_EQ(find(4)->recovery_point, longest_text);
  const auto before = snapshots();
  reopen();
  const auto after = snapshots();
  for (const std::size_t number : {1UL, 2UL, 3UL, 5UL, 6UL}) {  // A start may end a running one.
    EXPECT_TRUE(after[number - 1] == before[number - 1]) << number;
  }
  EXPECT_EQ(ask(List{.scope = longest_scope, .operation = longest_operation}).size(), 6U);
  EXPECT_EQ(ask(List{.state = State::pending, .operation = longest_operation}).size(), 1U);
  EXPECT_TRUE(ask(List{.operation = longest_operation.substr(0, 255)}).empty());
  const auto replayed = ask(widest(1));
  ASSERT_TRUE(is<Replay>(replayed)) << describe(replayed);
  EXPECT_TRUE(std::get<Replay>(replayed).response == largest_head("it ran"));
}

TEST_P(Bounds, S03_the_longest_names_and_texts_are_swept_claimed_and_reaped) {
  fill(store());
  ASSERT_FALSE(HasFailure());
  EXPECT_TRUE(is<Execute>(ask(widest(3)))) << "a released attempt runs again";
  const auto claimed = ask(Claim{token(50), longest_text, lease, true});
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->operation, longest_operation);
  EXPECT_EQ(claimed->scope, longest_scope);
  EXPECT_TRUE(claimed->request == any_bytes(100'000));
  clock.advance(lease);
  while (!sweep().empty()) {
  }
  for (const int number : {2, 3, 4, 5}) EXPECT_EQ(state(number), State::unknown) << number;
  EXPECT_EQ(find(4)->recovery_point, longest_text);
  clock.advance(retention);
  while (!reap().empty()) {
  }
  EXPECT_EQ(state(1), State::expired);
  EXPECT_EQ(find(1)->operation, longest_operation);
  clock.advance(tombstone);
  while (!reap().empty()) {
  }
  EXPECT_FALSE(find(1));
  EXPECT_FALSE(find(6));
}

TEST_P(Bounds, S19_the_longest_evidence_is_kept) {
  fill(store());
  ASSERT_FALSE(HasFailure());
  const auto log = ask(ReadEvidence{key(6)});
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0].source, "operator:" + text_of_bytes(limits::operator_name_bytes_max));
  EXPECT_EQ(log[0].evidence, text_of_bytes(limits::evidence_bytes_max));
  EXPECT_EQ(log[0].reason, text_of_bytes(limits::reason_bytes_max));
  // A busy record gathers many lines: a turn at a provider notes one, thirty times by default.
  for (std::uint32_t turn = 0; turn < limits::reconcile_attempts_default; ++turn) {
    const Reschedule again{.id = key(2),
                           .fence = find(2)->fence(),
                           .attempts = turn,
                           .reconcile_in = 1s,
                           .source = "provider",
                           .evidence = text_of_bytes(limits::evidence_bytes_max),
                           .reason = text_of_bytes(limits::reason_bytes_max)};
    ASSERT_EQ(ask(again).verdict, Resolve::Verdict::done) << turn;
  }
  const auto turns = ask(ReadEvidence{key(2)});
  ASSERT_EQ(turns.size(), static_cast<std::size_t>(limits::reconcile_attempts_default));
  EXPECT_EQ(turns.back().evidence, text_of_bytes(limits::evidence_bytes_max));
}

TEST_P(Bounds, S02_a_record_is_found_under_the_last_of_the_most_names) {
  run(widest(1));
  Reserve verb = widest(2);
  verb.token = token(2);
  const std::size_t most = limits::secrets_max * (1 + limits::former_operations_max);
  for (std::size_t name = 1; name < most; ++name) {
    verb.also.push_back({key(100 + static_cast<int>(name)), {body(1)}});
  }
  verb.also.back().id = key(1);
  const auto met = ask(verb);
  ASSERT_TRUE(is<InProgress>(met)) << describe(met);
  EXPECT_EQ(std::get<InProgress>(met).id, key(1));
  verb.also.back().id = key(3);
  EXPECT_TRUE(is<Execute>(ask(verb))) << "under none of them";
}

TEST_P(Bounds, S05_the_longest_scope_has_the_widest_quota) {
  Reserve verb = widest(1);
  verb.quota = Quota{.new_key_interval = std::chrono::microseconds(std::chrono::seconds(1)) /
                                         limits::new_keys_per_second_cap,
                     .new_keys_at_once = limits::new_keys_per_second_cap,
                     .active_keys = limits::active_keys_cap,
                     .stored_bytes = limits::stored_bytes_cap};
  EXPECT_EQ(ask(a_complete(run(verb), answer(200, any_bytes(100'000)))).verdict, Verdict::done);
  Reserve other = widest(2);
  other.quota = Quota{.active_keys = 1};
  EXPECT_TRUE(is<QuotaExceeded>(ask(other))) << "the first one counts";
  other.scope.back() = '~';
  EXPECT_TRUE(is<Execute>(ask(other))) << "another scope, by its last byte";
}

TEST_P(Bounds, S15_the_longest_times_are_kept) {
  const Millis longest = limits::duration_max;
  Reserve verb = widest(1);
  verb.lease = longest;
  verb.retention = longest;
  verb.tombstone = longest;
  const Execute attempt = run(verb);
  EXPECT_EQ(find(1)->locked_until, clock.now() + longest);
  ask(a_complete(attempt));
  EXPECT_EQ(find(1)->tombstone_until, clock.now() + longest + longest);
  EXPECT_TRUE(sweep().empty());
  EXPECT_TRUE(reap().empty());
}

TEST_P(Bounds, S04_as_many_calls_as_one_commit_takes_have_the_longest_names) {
  // There each is a call of its own, and costs its time.
  const std::size_t many = GetParam() == "dynamodb:" ? 32 : limits::commit_group_max;
  std::vector<StoreCall> calls;
  for (std::size_t i = 0; i < many; ++i) {
    Reserve verb = a_reserve(static_cast<int>(i));
    verb.id.bytes.front() = static_cast<std::uint8_t>(i >> 8U);
    verb.scope = longest_scope;
    verb.operation = longest_operation;
    verb.generation = store().identity().generation;
    calls.emplace_back(std::move(verb));
  }
  for (const StoreResult& result : ask_at_once(store(), std::move(calls))) {
    ASSERT_TRUE(result) << result.error().detail;
    EXPECT_TRUE(is<Execute>(std::get<ReserveOutcome>(*result)));
  }
  clock.advance(lease);
  std::size_t swept = 0;
  for (std::size_t now = sweep(limits::sweep_batch).size(); now > 0;
       now = sweep(limits::sweep_batch).size()) {
    swept += now;
  }
  EXPECT_EQ(swept, many);
  const auto listed = ask(List{.state = State::unknown, .limit = limits::list_page_max});
  ASSERT_EQ(listed.size(), many);
  EXPECT_TRUE(listed.back().operation == longest_operation);
}

TEST_P(Bounds, S02_the_largest_table_of_routes_is_adopted) {
  std::vector<RouteName> routes;
  for (std::size_t i = 0; i < limits::routes_max; ++i) {
    const std::string number = std::to_string(i);
    routes.push_back(
        {.methods = {"POST"},
         .pattern = "/v1/things-" + number + "/{id}",
         .name = text_of_bytes(limits::route_name_bytes_max, "route-" + number + "-")});
  }
  RouteName& last = routes.back();
  last.pattern = "/" + std::string(limits::route_path_bytes_max - 1, 'p');
  for (std::size_t i = 0; i < limits::former_operations_max; ++i) {
    std::string former = "PATCH /" + std::to_string(i) + "/";
    former.resize(limits::route_path_bytes_max, 'f');
    last.formerly.push_back(std::move(former));
  }
  const auto adopted = ask(AdoptRoutes{routes, {"Idempotency-Key"}});
  EXPECT_EQ(adopted.why_not, "");
  reopen();
  EXPECT_EQ(ask(AdoptRoutes{routes, {"Idempotency-Key"}}).generation, adopted.generation)
      << "it is the recorded one";
}

TEST_P(Bounds, S22_the_longest_line_has_the_longest_name_of_a_journal) {
  if (GetParam().starts_with("sealed_")) GTEST_SKIP() << "encryption takes a part of the line";
  const std::string name = text_of_bytes(limits::journal_name_bytes_max, "j", 59);
  const std::string line = any_bytes(limits::journal_line_bytes_max);
  for (std::uint64_t behind = 0; behind < 3; ++behind) {
    EXPECT_TRUE(ask(AppendLine{name, behind, line}).appended);
  }
  reopen();
  const auto read = ask(ReadLines{name, 2, limits::journal_read_lines_max});
  ASSERT_EQ(read.lines.size(), 1U);
  EXPECT_TRUE(read.lines[0].bytes == line);
  EXPECT_EQ(ask(ListJournals{name}).size(), 1U);
  EXPECT_TRUE(ask(DropJournal{name, 3}).dropped);
}

TEST_P(Bounds, S02_a_copy_has_the_longest_values) {
  if (GetParam().starts_with("sealed_")) GTEST_SKIP() << "it takes no answers in clear";
  const auto other = open_by_url("memory:", clock);
  fill(*other);
  ASSERT_FALSE(HasFailure());
  const auto copy = [](Store& from, Store& to) {
    const auto pass = copy_records(from, to, CopySource::kept, [](const CopyPass&) {});
    EXPECT_TRUE(pass) << pass.error().why;
    return pass.value_or(CopyPass{});
  };
  EXPECT_EQ(copy(*other, store()).records, 5U) << "all but the one that runs";
  const CopyPass again = copy(*other, store());
  EXPECT_TRUE(again.is_clean());
  EXPECT_EQ(again.source, again.target);
  for (const int number : {1, 2, 3, 5, 6}) {
    EXPECT_TRUE(snapshot(number) == describe(*test::try_ask(*other, Find{key(number)}))) << number;
  }
  const auto back = open_by_url("memory:", clock);
  EXPECT_EQ(copy(store(), *back).records, 5U);
}

// ---- bodies ----

class BodyBounds : public StoreConformance {
 protected:
  /// DynamoDB's stand-in takes 350 KiB in one thread for what the service takes in many.
  std::size_t largest_bytes() const {
    return limits::request_body_bytes_cap / (GetParam() == "dynamodb:" || sanitized ? 8 : 1);
  }
  /// As gateways ask: again while the store does not answer in time, which a busy machine may
  /// cause.
  template <class Verb>
  std::expected<typename Verb::Reply, StoreError> ask_until_answered(Verb verb) {
    auto reply = try_ask(verb);
    for (int tries = 1; tries < 5 && !reply && !reply.error().is_final(); ++tries) {
      reply = try_ask(verb);
    }
    return reply;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, BodyBounds, stores_and({"sharded:"}), name_of_store);

TEST_P(BodyBounds, S14_the_largest_answer_is_replayed_byte_for_byte) {
  const StoredResponse largest = largest_head(any_bytes(largest_bytes()));
  const auto settled = ask_until_answered(a_complete(run(1), largest));
  ASSERT_TRUE(settled) << settled.error().detail;
  EXPECT_EQ(settled->verdict, Verdict::done);
  reopen();
  const auto replayed = ask_until_answered(a_reserve(1, 2));
  ASSERT_TRUE(replayed && is<Replay>(*replayed));
  EXPECT_TRUE(std::get<Replay>(*replayed).response == largest);
  clock.advance(retention);
  EXPECT_EQ(reap().size(), 1U);
  EXPECT_EQ(state(1), State::expired);
}

TEST_P(BodyBounds, S07_the_largest_request_is_claimed_as_it_was) {
  const std::string largest = any_bytes(limits::head_bytes_max + largest_bytes());
  const auto accepted = ask_until_answered(an_accept(1, largest));
  ASSERT_TRUE(accepted) << accepted.error().detail;
  EXPECT_TRUE(is<Pending>(*accepted));
  reopen();
  auto claimed = try_ask(Claim{token(50), "dispatcher", lease, false});
  for (int tries = 1; tries < 5 && !claimed; ++tries) {
    clock.advance(lease);  // A claim in doubt is left to its lease.
    sweep();
    claimed = try_ask(Claim{token(50 + tries), "dispatcher", lease, false});
  }
  ASSERT_TRUE(claimed) << claimed.error().detail;
  ASSERT_TRUE(*claimed);
  EXPECT_TRUE((*claimed)->request == largest);
}

}  // namespace
}  // namespace idem::test
