#pragma once

#include "store/redis/identity.hpp"
#include "store/redis/retrying_client.hpp"

#include <idem/open_store.hpp>

#include <functional>
#include <map>
#include <set>

/// How a store gets its identity, and how it changes (protocol.md §2), where no step can look at
/// all buckets at once: a change closes each bucket for reserves, looks, decides, records, and
/// opens them again. Whoever finds it abandoned halfway, takes it back.
namespace idem::redis {

/// What the buckets hold, as it was while they were closed.
struct Holdings {
  std::set<std::string, std::less<>> operations;
  GenerationCensus census;
};

class IdentitySteps {
 public:
  IdentitySteps(RetryingClient& asking, const Names& names, Versions& versions)
      : client_(asking), names_(names), versions_(versions) {}

  /// Erases what counts as no record, so that it is in nobody's way.
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

  /// A bucket was found closed: opens it, should nobody be about to.
  Task<void> repair(std::size_t bucket);

  /// How buckets name that generation, as this node adopted it; what no bucket has, where it did
  /// not.
  std::string text_of(std::uint64_t generation) const;

  /// None: there is none.
  Task<std::expected<std::optional<IdentityValue>, NoReply>> read();

 private:
  /// Changes what is to be recorded; false: it shall stay as it was.
  using Decide = std::function<bool(StoreIdentity& next, const Holdings& holdings)>;

  Task<std::expected<void, NoReply>> change(Decide decide);
  /// False: it was decided to leave all as it is.
  Task<std::expected<bool, NoReply>> change_once(const Decide& decide);
  Task<std::expected<IdentityValue, NoReply>> begin_change();
  Task<std::expected<Holdings, NoReply>> close_buckets(const StoreIdentity& identity);
  Task<std::expected<void, NoReply>> end_change(Version begun, const StoreIdentity& before,
                                                const StoreIdentity& identity);
  void remember(const StoreIdentity& identity);
  Task<std::expected<void, NoReply>> open_buckets(const StoreIdentity& identity);
  /// False: something else lies there than `before`.
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
