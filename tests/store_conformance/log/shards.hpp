#pragma once

#include "store/log/check_store.hpp"
#include "store/log/log_store.hpp"
#include "store_conformance/log/runs.hpp"
#include "store_conformance/lost_medium.hpp"

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace idem::test {

/// Ids that are spread, as digests are.
inline RecordId numbered(std::uint64_t number) {
  RecordId id;
  const std::uint64_t mixed = number * 0x9e3779b97f4a7c15U;
  std::memcpy(id.bytes.data(), &mixed, sizeof mixed);
  std::memcpy(id.bytes.data() + sizeof mixed, &number, sizeof number);
  return id;
}

inline Reserve reserve_of(const RecordId& id, int token_number = 1) {
  Reserve verb = a_reserve(1, token_number);
  verb.id = id;
  verb.generation = 1;
  return verb;
}

/// A store whose records are spread over several shards.
class Shards : public OnLostMedium {
 protected:
  std::string path(const std::string& part = "") const { return folder_.file("idem.store") + part; }

  std::expected<std::unique_ptr<Store>, StoreError> try_open(std::uint32_t shards) {
    return open_log(path(), test_settings(),
                    {.host = clock.host(),
                     .sizes = {.segment_bytes = 64UL << 10U,
                               .cache_bytes = 4UL << 20U,
                               .buffer_bytes = 128UL << 10U},
                     .shards = shards,
                     .moving = [this](std::uint32_t, std::uint64_t moved) { moved_ = moved; }});
  }
  void open(std::uint32_t shards) {
    store_.reset();
    auto store = try_open(shards);
    ASSERT_TRUE(store) << store.error().detail;
    store_ = std::move(*store);
  }
  std::string refusal(std::uint32_t shards) {
    const auto store = try_open(shards);
    return store ? "" : store.error().detail;
  }
  template <class Verb>
  typename Verb::Reply ask(Verb verb) {
    auto reply = ask_and_wait(*store_, std::move(verb));
    if (reply) return std::move(*reply);
    ADD_FAILURE() << reply.error().detail;
    return {};
  }
  Execute run(std::uint64_t number) {
    const auto outcome = ask(reserve_of(numbered(number)));
    EXPECT_TRUE(is<Execute>(outcome)) << describe(outcome);
    return is<Execute>(outcome) ? std::get<Execute>(outcome) : Execute{};
  }
  void complete_many(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) {
      ask(a_complete(run(number), answer(201, std::to_string(number))));
    }
  }
  void expect_answers(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) {
      const auto outcome = ask(reserve_of(numbered(number), 2));
      ASSERT_TRUE(is<Replay>(outcome)) << number << ": " << describe(outcome);
      ASSERT_EQ(std::get<Replay>(outcome).response.body, std::to_string(number));
    }
  }
  void expect_sound() {
    const auto report = segments::check_store(path(), {});
    ASSERT_TRUE(report) << report.error().why;
    EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                                << report->findings.front().what;
  }
  int folders() const {
    if (!std::filesystem::exists(path("/shards"))) return 1;
    return 1 + static_cast<int>(
                   std::distance(std::filesystem::directory_iterator(path("/shards")), {}));
  }

  using Parts = std::vector<std::string>;
  /// The parts' files as they are now, as a kill would leave them if the store is open and idle.
  void keep(const Parts& parts) {
    std::filesystem::remove_all(path(".kept"));
    std::filesystem::create_directories(path(".kept/shards"));
    for (const std::string& part : parts) {
      std::filesystem::copy(path(part), path(".kept" + part),
                            std::filesystem::copy_options::recursive);
    }
  }
  void bring_back(const Parts& parts) {
    for (const std::string& part : parts) {
      std::filesystem::remove_all(path(part));
      std::filesystem::rename(path(".kept" + part), path(part));
    }
  }
  const Parts first_shard{"/commits", "/records", "/ids", "/index", "/mark"};
  const Parts second_shard{"/shards/01"};

  std::optional<std::uint64_t> moved_;
};

}  // namespace idem::test
