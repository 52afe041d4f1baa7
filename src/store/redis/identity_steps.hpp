#pragma once

#include "store/redis/retrying_client.hpp"
#include "store/store_identity.hpp"

#include <idem/open_store.hpp>

#include <functional>
#include <map>
#include <set>

/// Settles and changes a store's identity (protocol.md §2). No step can see all buckets at once, so
/// a change closes each bucket for reserves, reads them, decides, records, and opens them again. A
/// node that finds an abandoned change ends it.
namespace idem::redis {

/// The content of the buckets while they were closed.
struct Holdings {
  std::set<std::string, std::less<>> operations;
  GenerationCensus census;
};

class IdentitySteps {
 public:
  IdentitySteps(RetryingClient& client, const Names& names, Versions& versions)
      : client_(client), names_(names), versions_(versions) {}

  /// `reap` erases the records that count as gone, so that they do not keep a change from being
  /// made.
  void set_reap(std::function<Task<void>()> reap) { reap_ = std::move(reap); }

  /// At the start. The error is for people.
  struct Settled {
    Identity identity;
    std::array<std::uint8_t, 16> store_id{};
    bool is_new = false;
  };
  Task<std::expected<Settled, std::string>> settle(IdentitySettings settings, WhichStore which);

  Task<std::expected<AdoptRoutes::Reply, NoReply>> adopt(AdoptRoutes verb,
                                                         IdentitySettings settings);

  /// For a bucket that was found closed: opens it, unless another node is about to.
  Task<void> repair(std::size_t bucket);

  /// The text by which buckets name the generation that this node adopted; for another generation a
  /// text that no bucket has.
  std::string text_of(std::uint64_t generation) const;

  /// None: the store has no identity yet.
  Task<std::expected<std::optional<IdentityValue>, NoReply>> read();

 private:
  /// Changes `next`, which is then recorded. False: the identity stays as it was.
  using Decide = std::function<bool(StoreIdentity& next, const Holdings& holdings)>;

  Task<std::expected<void, NoReply>> change(Decide decide);
  /// False: `decide` left all as it was.
  Task<std::expected<bool, NoReply>> change_once(const Decide& decide);
  Task<std::expected<IdentityValue, NoReply>> begin_change();
  Task<std::expected<Holdings, NoReply>> close_buckets(const StoreIdentity& identity);
  Task<std::expected<void, NoReply>> end_change(Version begun, const StoreIdentity& before,
                                                const StoreIdentity& identity);
  void remember(const StoreIdentity& identity);
  Task<std::expected<void, NoReply>> open_buckets(const StoreIdentity& identity);
  Question open_question(std::size_t bucket, const StoreIdentity& identity) const;
  /// False: the recorded value has another version than `before`.
  Task<std::expected<bool, NoReply>> swap(std::string_view before, const IdentityValue& after);
  bool is_abandoned(const StoreIdentity& identity, StoreTime now) const noexcept;
  Task<std::expected<StoreTime, NoReply>> now();

  RetryingClient& client_;
  const Names& names_;
  Versions& versions_;
  std::function<Task<void>()> reap_;
  std::map<std::uint64_t, std::string> texts_;  ///< Of the generations that this node adopted.
};

}  // namespace idem::redis
