#include "store/sealed_store.hpp"
#include "core/record/sealed_parts.hpp"
#include "store/stores.hpp"
#include "store_conformance/forwarding_store.hpp"
#include "store_conformance/transacting.hpp"

/// What a store keeps encrypted (protocol.md §14), and what opens it.
namespace idem::test {
namespace {

const Secret oldest{1};
const Secret newer{2};

EncryptionSettings sealing_under(std::vector<Secret> secrets, bool accept_clear = true) {
  EncryptionSettings settings;
  settings.secrets = std::move(secrets);
  settings.accept_clear = accept_clear;
  return settings;
}

/// One store below, which several wrappers see one after the other, as processes would.
class Sealed : public testing::Test {
 protected:
  std::unique_ptr<Store> sealed_by(EncryptionSettings settings) {
    return make_sealed(std::make_unique<ForwardingStore>(*below_), settings);
  }
  template <class Verb>
  auto must(Store& store, Verb verb) {
    auto reply = ask_and_wait(store, std::move(verb));
    EXPECT_TRUE(reply) << reply.error().detail;
    return reply ? std::move(*reply) : typename Verb::Reply{};
  }
  Execute run(Store& store, int number) {
    Reserve verb = a_reserve(number);
    verb.generation = below_->identity().generation;
    const auto outcome = must(store, verb);
    EXPECT_TRUE(is<Execute>(outcome)) << describe(outcome);
    return is<Execute>(outcome) ? std::get<Execute>(outcome) : Execute{};
  }
  auto retry(Store& store, int number) {
    Reserve verb = a_reserve(number, 2);
    verb.generation = below_->identity().generation;
    return ask_and_wait(store, verb);
  }
  void expect_replay(Store& store, int number) {
    const auto reply = retry(store, number);
    ASSERT_TRUE(reply) << reply.error().detail;
    ASSERT_TRUE(is<Replay>(*reply)) << describe(*reply);
    EXPECT_EQ(std::get<Replay>(*reply).response, answer());
    EXPECT_EQ(must(store, Find{key(number)})->response, answer());
  }
  void expect_damaged(Store& store, int number, const std::string& part) {
    const auto reply = retry(store, number);
    ASSERT_FALSE(reply) << describe(*reply);
    EXPECT_EQ(reply.error().code, StoreError::Code::damaged);
    EXPECT_EQ(reply.error().record, key(number));
    EXPECT_NE(reply.error().detail.find(part), std::string::npos) << reply.error().detail;
    const auto found = ask_and_wait(store, Find{key(number)});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, StoreError::Code::damaged);
  }
  StoredResponse kept(int number) { return *must(*below_, Find{key(number)})->response; }

  TestClock clock_;
  std::unique_ptr<Store> below_ = open_by_url("memory:", clock_);
};

TEST_F(Sealed, S14_an_older_secret_opens_and_a_missing_one_is_named) {
  const auto first = sealed_by(sealing_under({oldest}));
  must(*first, a_complete(run(*first, 1)));
  EXPECT_TRUE(is_sealed(kept(1)));
  expect_replay(*first, 1);
  const auto rotated = sealed_by(sealing_under({newer, oldest}));
  expect_replay(*rotated, 1);
  must(*rotated, a_complete(run(*rotated, 2)));
  const auto without = sealed_by(sealing_under({newer}));
  expect_replay(*without, 2);
  expect_damaged(*without, 1, to_hex(wrapping_key_name(oldest)));
  expect_damaged(*without, 1, "none of encryption.secret_files gives");
  expect_damaged(*sealed_by({}), 1, "there are no encryption.secret_files");
  expect_damaged(*sealed_by({}), 2, to_hex(wrapping_key_name(newer)));
}

TEST_F(Sealed, S14_an_answer_in_clear_is_replayed_only_where_that_is_accepted) {
  must(*below_, a_complete(run(*below_, 1)));
  expect_replay(*sealed_by({}), 1);
  expect_replay(*sealed_by(sealing_under({newer})), 1);
  expect_damaged(*sealed_by(sealing_under({newer}, false)), 1, "is in clear");
}

TEST_F(Sealed, S14_what_a_store_answers_by_itself_is_in_clear_and_accepted) {
  const auto store = sealed_by(sealing_under({newer}, false));
  Accept verb = an_accept(1);
  verb.as.generation = below_->identity().generation;
  must(*store, verb);
  clock_.advance(retention);
  must(*store, Sweep{10});
  const auto found = must(*store, Find{key(1)});
  ASSERT_TRUE(found && found->response);
  EXPECT_EQ(found->response->status, 408);
  const auto reply = retry(*store, 1);
  ASSERT_TRUE(reply) << reply.error().detail;
  EXPECT_TRUE(is<Replay>(*reply));
}

TEST_F(Sealed, S14_an_attempt_of_another_process_is_completed_sealed) {
  const Execute won = run(*below_, 1);
  const auto store = sealed_by(sealing_under({newer}));
  EXPECT_EQ(must(*store, a_complete(won)).verdict, Verdict::done);
  EXPECT_TRUE(is_sealed(kept(1)));
  expect_replay(*store, 1);
  // By its token alone.
  const Execute second = run(*below_, 2);
  EXPECT_EQ(must(*store, by_token(a_complete(second))).verdict, Verdict::done);
  expect_replay(*store, 2);
  Complete stale = by_token(a_complete(run(*below_, 3)));
  stale.attempt.token = token(77);
  EXPECT_EQ(must(*store, stale).verdict, Verdict::stale);
  EXPECT_EQ(must(*store, Find{key(3)})->state, State::in_progress);
  EXPECT_EQ(must(*store, a_complete({key(9), {1, token(1)}, {}})).verdict, Verdict::stale);
}

TEST_F(Sealed, S14_an_answer_by_evidence_is_sealed) {
  const auto store = sealed_by(sealing_under({newer}, false));
  const Execute won = run(*store, 1);
  must(*store, a_mark_unknown(won));
  const auto reply = must(*store, a_resolve(1, Resolve::As::completed, won.attempt.fence));
  EXPECT_EQ(reply.verdict, Resolve::Verdict::done);
  EXPECT_TRUE(is_sealed(kept(1)));
  EXPECT_EQ(must(*store, Find{key(1)})->response, answer(201, "found at the provider"));
  EXPECT_EQ(must(*store, a_resolve(9, Resolve::As::completed, Fence{1})).verdict,
            Resolve::Verdict::not_found);
}

TEST_F(Sealed, S22_an_events_kept_answer_is_sealed_in_the_log) {
  const auto store = sealed_by(sealing_under({newer}));
  const Execute won = run(*store, 1);
  Resolve event = a_resolve(1, Resolve::As::completed, won.attempt.fence, clock_.now());
  event.evidence = R"({"event":"e1","kept":{"status":201,"body_b64":"aXQgcmFu"}})";
  EXPECT_EQ(must(*store, event).verdict, Resolve::Verdict::wrong_state);
  Resolve by_person = a_resolve(1, Resolve::As::completed, won.attempt.fence, clock_.now());
  must(*store, by_person);
  const auto below = must(*below_, ReadEvidence{key(1)});
  ASSERT_EQ(below.size(), 2U);
  EXPECT_EQ(below[0].evidence.find("aXQgcmFu"), std::string::npos);
  EXPECT_EQ(below[1].evidence, by_person.evidence) << "people's words stay readable";
  const auto log = must(*store, ReadEvidence{key(1)});
  EXPECT_EQ(log[0].evidence, event.evidence);
  EXPECT_EQ(log[1].evidence, by_person.evidence);
  const auto refused = ask_and_wait(*sealed_by(sealing_under({oldest})), ReadEvidence{key(1)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StoreError::Code::damaged);
}

TEST_F(Sealed, S22_an_answer_that_was_put_into_the_log_in_clear_is_not_read) {
  const Execute won = run(*below_, 1);
  const auto strict = sealed_by(sealing_under({newer}, false));
  int number = 1;
  for (const std::string_view name :
       {"\"kept\":", "\"kept\" :", R"("\u006bept":)", "\"kept\"\n:\t"}) {
    Resolve forged = a_resolve(number, Resolve::As::completed, won.attempt.fence, clock_.now());
    forged.evidence =
        R"({"event":"e1",)" + std::string(name) + R"({"status":201,"body_b64":"Zm9yZ2Vk"}})";
    must(*below_, forged);
    const auto refused = ask_and_wait(*strict, ReadEvidence{key(number)});
    ASSERT_FALSE(refused) << name << ": a reconciler would seal the forged answer as its own";
    EXPECT_EQ(refused.error().code, StoreError::Code::damaged);
    EXPECT_TRUE(ask_and_wait(*sealed_by(sealing_under({newer})), ReadEvidence{key(number)}));
    ++number;
  }
  must(*below_, a_resolve(7, Resolve::As::completed, won.attempt.fence, clock_.now()));
  EXPECT_TRUE(ask_and_wait(*strict, ReadEvidence{key(7)})) << "people's words are in clear";
}

TEST_F(Sealed, S07_a_stored_request_that_does_not_open_rests_and_others_are_claimed) {
  const auto first = sealed_by(sealing_under({oldest}));
  const auto store = sealed_by(sealing_under({newer}));
  const auto accept = [&](Store& with, int number) {
    Accept verb = an_accept(number, "POST / please " + std::to_string(number));
    verb.as.generation = below_->identity().generation;
    EXPECT_TRUE(is<Pending>(must(with, verb)));
  };
  accept(*first, 1);
  clock_.advance(1ms);
  accept(*store, 2);
  EXPECT_TRUE(is_sealed_request(*must(*below_, Find{key(1)})->stored_request));
  const Claim claim{token(50), "dispatcher", lease, false};
  const auto refused = ask_and_wait(*store, claim);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StoreError::Code::damaged);
  EXPECT_EQ(refused.error().record, key(1));
  const auto claimed = must(*store, claim);
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->request, "POST / please 2");
  must(*store, Complete{claimed->id, claimed->attempt, answer(), {}});
  expect_replay(*store, 2);
  EXPECT_FALSE(must(*store, claim)) << "it rests";
  EXPECT_EQ(must(*below_, Find{key(1)})->state, State::pending);
  clock_.advance(5min);
  const auto by_other = must(*first, claim);
  ASSERT_TRUE(by_other);
  EXPECT_EQ(by_other->request, "POST / please 1");
}

TEST_F(Sealed, S14_a_retry_of_a_released_attempt_seals_for_the_new_fence) {
  const auto store = sealed_by(sealing_under({newer}, false));
  const Execute first = run(*store, 1);
  must(*store, a_release(first));
  const Execute second = run(*store, 1);
  ASSERT_NE(first.attempt.fence, second.attempt.fence);
  must(*store, a_complete(second));
  expect_replay(*store, 1);
}

class SealedInTransactions : public StoreConformance {
 protected:
  void SetUp() override {
    const auto made = store().transactions()->run(payments_table);
    ASSERT_TRUE(made) << made.error();
  }
};

TEST_P(SealedInTransactions, S17_the_answer_of_a_transaction_is_sealed_and_opens) {
  Transactions& transactions = *store().transactions();
  EXPECT_EQ(transactions.run(under(run(1), pays("p1"))).how, TransactionEnd::How::committed);
  InTransaction whole{a_reserve(2), {}, {}, pays("p2")};
  whole.reserve->generation = store().identity().generation;
  EXPECT_EQ(transactions.run(std::move(whole)).how, TransactionEnd::How::committed);
  InTransaction again{a_reserve(2, 9), {}, {}, pays("p3")};
  again.reserve->generation = store().identity().generation;
  const auto end = transactions.run(std::move(again));
  ASSERT_EQ(end.how, TransactionEnd::How::not_run);
  ASSERT_TRUE(is<Replay>(*end.reserved));
  EXPECT_EQ(std::get<Replay>(*end.reserved).response, answer(201, "p2"));
  for (const int number : {1, 2}) {
    EXPECT_EQ(find(number)->response, answer(201, "p" + std::to_string(number)));
  }
  EXPECT_EQ(rows_in(transactions), 2);
}

TEST_P(SealedInTransactions, S17_so_is_that_of_an_attempt_that_another_process_was_granted) {
  const Execute won = run(1);
  reopen();
  EXPECT_EQ(store().transactions()->run(under(won, pays("p1"))).how,
            TransactionEnd::How::committed);
  EXPECT_EQ(find(1)->response, answer(201, "p1"));
  const Execute none{key(9), {1, token(1)}, {}};
  EXPECT_EQ(store().transactions()->run(under(none, pays("p9"))).how,
            TransactionEnd::How::superseded);
}

INSTANTIATE_TEST_SUITE_P(Stores, SealedInTransactions,
                         testing::Values("sealed_sqlite:", "sealed_postgres:", "scoped_sqlite:",
                                         "scoped_postgres:"),
                         name_of_store);

}  // namespace
}  // namespace idem::test
