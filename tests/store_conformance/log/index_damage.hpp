#pragma once

#include "store/log/log_store.hpp"
#include "store_conformance/log/shards.hpp"

namespace idem::test {

namespace fs = std::filesystem;

/// A store with something in each family of its index.
class LogIndexDamage : public OnLostMedium {
 protected:
  std::string path(const std::string& part = "") const { return folder_.file("idem.store") + part; }

  std::expected<std::unique_ptr<Store>, StoreError> try_open() {
    reindexed_.clear();
    return open_log(path(), test_settings(),
                    {.host = clock.host(),
                     .reindexed = [this](const std::string& what) { reindexed_ = what; }});
  }
  void open() {
    store_.reset();
    auto store = try_open();
    ASSERT_TRUE(store) << store.error().detail;
    store_ = std::move(*store);
  }
  template <class Verb>
  std::expected<typename Verb::Reply, StoreError> try_ask(Verb verb) {
    if constexpr (std::is_same_v<Verb, Reserve>) verb.generation = 1;
    if constexpr (std::is_same_v<Verb, Accept>) verb.as.generation = 1;
    return ask_and_wait(*store_, std::move(verb));
  }
  template <class Verb>
  typename Verb::Reply must(Verb verb) {
    auto reply = try_ask(std::move(verb));
    if (reply) return std::move(*reply);
    ADD_FAILURE() << reply.error().detail;
    return {};
  }
  Execute run(std::uint64_t number) {
    Reserve verb = reserve_of(numbered(number));
    verb.scope = "acme";
    verb.quota = Quota{.active_keys = 10'000};
    const auto outcome = must(std::move(verb));
    EXPECT_TRUE(is<Execute>(outcome)) << describe(outcome);
    return is<Execute>(outcome) ? std::get<Execute>(outcome) : Execute{};
  }

  /// Something in each family, and all of it in RocksDB's files. So many are completed, one moment
  /// each, so one list each.
  void fill(std::uint64_t completed) {
    open();
    for (std::uint64_t number = 1; number <= completed; ++number) {
      clock.advance(1ms);
      must(a_complete(run(number)));
    }
    const Execute lost = run(resolved);
    must(a_mark_unknown(lost));
    clock.advance(lease + 1ms);
    Resolve settles = a_resolve(1, Resolve::As::failed_retryable, lost.attempt.fence, clock.now());
    settles.id = numbered(resolved);
    must(std::move(settles));
    must(a_mark_unknown(run(left_unknown)));
    Accept later = an_accept(1);
    later.as.id = numbered(accepted);
    must(std::move(later));
    must(AppendLine{"j", 0, "a line"});
    store_.reset();
    fs::copy(path(), sound(), fs::copy_options::recursive);
  }
  static constexpr std::uint64_t resolved = 10'001;
  static constexpr std::uint64_t left_unknown = 10'002;
  static constexpr std::uint64_t accepted = 10'003;

  std::string outcome(std::uint64_t number) {
    const auto outcome = try_ask(reserve_of(numbered(number), 2));
    if (!outcome) return outcome.error().detail;
    return is<Replay>(*outcome) ? "replay" : describe(*outcome);
  }
  std::string sound() const { return folder_.file("sound"); }
  void bring_back() {
    store_.reset();
    fs::remove_all(path());
    fs::copy(sound(), path(), fs::copy_options::recursive);
  }
  std::vector<std::string> tables() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(sound() + "/index")) {
      if (file.path().extension() == ".sst") names.push_back(file.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }
  /// RocksDB's, the present one.
  std::string list_of_files() const {
    const std::string line = content_of(path("/index/CURRENT"));
    return path("/index/" + line.substr(0, line.size() - 1));
  }
  static void flip(const std::string& file, std::size_t at) {
    std::string bytes = content_of(file);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    put_content(file, bytes);
  }

  /// All that reads lists, evidence, journals and requests. What fails does so as damaged.
  int use_everything() {
    int failed = 0;
    const auto look_at = [&](const auto& reply) {
      if (reply) return;
      ++failed;
      EXPECT_EQ(reply.error().code, StoreError::Code::damaged) << reply.error().detail;
    };
    look_at(try_ask(Count{}));
    look_at(try_ask(Sweep{100}));
    look_at(try_ask(Reap{100}));
    look_at(try_ask(List{}));
    look_at(try_ask(List{.state = State::unknown}));
    look_at(try_ask(ReadEvidence{numbered(resolved)}));
    look_at(try_ask(ReadLines{"j"}));
    look_at(try_ask(ListJournals{}));
    look_at(try_ask(AppendLine{"j", 1, "another line"}));
    Claim claim;
    claim.token = token(77);
    claim.owner = "worker";
    claim.lease = lease;
    look_at(try_ask(std::move(claim)));
    return failed;
  }
  void expect_replays(std::uint64_t completed) {
    for (const std::uint64_t number : {std::uint64_t{1}, completed / 2, completed}) {
      EXPECT_EQ(outcome(number), "replay") << number;
    }
  }
  void expect_no_key_runs_again(std::uint64_t completed) {
    expect_replays(completed);
    const auto found = try_ask(Find{numbered(left_unknown)});
    EXPECT_TRUE(found && *found && (*found)->state == State::unknown);
  }

  std::string reindexed_;
};

}  // namespace idem::test
