#include "core/record/sealed_parts.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/sealed_store.hpp"
#include "store_conformance/forwarding_store.hpp"
#include "store_conformance/harness.hpp"

#include <idem/fingerprint.hpp>

/// Another form of what is stored, and a store that comes under another key with it (§14).
namespace idem::test {
namespace {

using Ended = Resolve::Verdict;

Reseal of(int number) {
  Reseal verb;
  verb.id = key(number);
  return verb;
}

class ResealConformance : public StoreConformance {
 protected:
  Reseal answer_of(int number, StoredResponse next) {
    const auto record = find(number);
    Reseal verb = of(number);
    verb.fence = record->fence();
    verb.seen = digest_of_stored(*record->response);
    verb.response = std::move(next);
    return verb;
  }
  std::unique_ptr<Store> sealed_by(std::vector<Secret> secrets, bool accept_clear = true) {
    EncryptionSettings settings;
    settings.secrets = std::move(secrets);
    settings.accept_clear = accept_clear;
    return make_sealed(std::make_unique<ForwardingStore>(store()), settings);
  }
  Ended rekey(Store& by, int number) {
    const auto reply = ask_and_wait(by, of(number));
    EXPECT_TRUE(reply) << reply.error().detail;
    return reply ? reply->verdict : Ended::by_evidence;
  }
  auto find_by(Store& by, int number) {
    auto found = ask_and_wait(by, Find{key(number)});
    EXPECT_TRUE(found) << found.error().detail;
    return found && *found ? **found : Record{};
  }
};

TEST_P(ResealConformance, S14_another_form_takes_the_place_of_what_was_read) {
  for (const std::size_t size : {10U, 5'000U, 100'000U}) {
    const int number = 1 + static_cast<int>(size % 7);
    ask(a_complete(run(number), answer(201, std::string(size, 'a'))));
    const auto before = find(number);
    const auto census = ask(Count{});
    for (const std::size_t next_size : {std::size_t{20}, std::size_t{9'000}}) {
      StoredResponse next{201, {{"X-Form", "another"}}, std::string(next_size, 'b')};
      EXPECT_EQ(ask(answer_of(number, next)).verdict, Ended::done);
      reopen();
      auto expected = before;
      expected->response = next;
      EXPECT_EQ(describe(find(number)), describe(expected));
      EXPECT_EQ(ask(Count{}).by_state, census.by_state);
    }
  }
}

TEST_P(ResealConformance, S14_nothing_else_changes_it) {
  const Execute won = run(1);
  ask(a_complete(won));
  const std::string before = snapshot(1);
  Reseal verb = answer_of(1, answer(201, "other"));
  verb.seen[0] ^= 1;
  EXPECT_EQ(ask(verb).verdict, Ended::superseded);
  verb = answer_of(1, answer(200, "other"));
  EXPECT_EQ(ask(verb).verdict, Ended::superseded) << "the status stays";
  verb = answer_of(1, answer(201, "other"));
  verb.fence = *verb.fence + 1;
  EXPECT_EQ(ask(verb).verdict, Ended::wrong_fence);
  verb.fence.reset();
  EXPECT_EQ(ask(verb).verdict, Ended::wrong_fence);
  Reseal of_request = of(1);
  of_request.request = "r";
  EXPECT_EQ(ask(of_request).verdict, Ended::wrong_state);
  EXPECT_FALSE(try_ask(of(1))) << "of nothing";
  verb = answer_of(1, answer(201, "other"));
  verb.id = key(9);
  EXPECT_EQ(ask(verb).verdict, Ended::not_found);
  run(2);
  verb.id = key(2);
  EXPECT_EQ(ask(verb).verdict, Ended::wrong_state);
  EXPECT_EQ(snapshot(1), before);
  clock.advance(retention);
  verb.id = key(1);
  EXPECT_EQ(ask(verb).verdict, Ended::wrong_state) << "its answer has expired";
}

TEST_P(ResealConformance, S14_a_request_that_waits_gets_another_form_and_a_running_one_does_not) {
  ask(an_accept(1, "first form"));
  Reseal verb = of(1);
  verb.seen = digest_of_stored("first form");
  verb.request = "second form";
  EXPECT_EQ(ask(verb).verdict, Ended::done);
  EXPECT_EQ(ask(verb).verdict, Ended::superseded) << "a repeat";
  reopen();
  EXPECT_EQ(find(1)->stored_request, "second form");
  const auto claimed = ask(Claim{token(50), "dispatcher", lease, true});
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->request, "second form");
  verb.seen = digest_of_stored("second form");
  EXPECT_EQ(ask(verb).verdict, Ended::wrong_state);
  ask(a_mark_unknown({claimed->id, claimed->attempt, {}}));
  EXPECT_EQ(ask(verb).verdict, Ended::done);
}

TEST_P(ResealConformance, S14_records_come_under_the_newest_key_one_by_one) {
  const Secret oldest{1};
  const Secret newest{2};
  const auto first = sealed_by({oldest});
  const auto both = sealed_by({newest, oldest});
  const auto second = sealed_by({newest}, false);
  const auto complete_by = [&](Store& by, int number, std::size_t size) {
    EXPECT_TRUE(ask_and_wait(by, a_complete(run(number), answer(201, std::string(size, 'a')))));
  };
  complete_by(*first, 1, 10);
  complete_by(*first, 2, 50'000);
  complete_by(store(), 3, 10);
  complete_by(*second, 4, 10);
  Accept accept = an_accept(5, "POST / please");
  accept.as.generation = store().identity().generation;
  EXPECT_TRUE(ask_and_wait(*first, accept));
  ask(an_accept(6, "in clear"));
  run(7);
  for (const int number : {1, 2, 3, 5, 6}) EXPECT_EQ(rekey(*both, number), Ended::done) << number;
  for (const int number : {1, 2, 3, 4, 5, 6, 7}) {
    EXPECT_EQ(rekey(*both, number), Ended::wrong_state) << number;
  }
  EXPECT_EQ(rekey(*both, 9), Ended::not_found);
  EXPECT_EQ(find_by(*second, 1).response, answer(201, std::string(10, 'a')));
  EXPECT_EQ(find_by(*second, 2).response, answer(201, std::string(50'000, 'a')));
  EXPECT_EQ(find_by(*second, 3).response, answer(201, std::string(10, 'a')));
  EXPECT_EQ(find_by(*second, 5).stored_request, "POST / please");
  EXPECT_EQ(find_by(*second, 6).stored_request, "in clear");
  const auto replayed = ask_and_wait(*second, [&] {
    Reserve verb = a_reserve(1, 2);
    verb.generation = store().identity().generation;
    return verb;
  }());
  EXPECT_TRUE(replayed && is<Replay>(*replayed));
}

TEST_P(ResealConformance, S14_what_is_not_accepted_in_clear_is_not_sealed) {
  ask(a_complete(run(1)));
  const auto strict = sealed_by({Secret{1}}, false);
  const auto refused = ask_and_wait(*strict, of(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StoreError::Code::damaged);
  EXPECT_EQ(find(1)->response, answer());
  const auto without = ask_and_wait(*sealed_by({}), of(1));
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, StoreError::Code::refused);
}

INSTANTIATE_TEST_SUITE_P(Stores, ResealConformance,
                         stores_and({"postgres_pooled:", "redis_cluster:", "hybrid:"}),
                         name_of_store);

}  // namespace
}  // namespace idem::test
