#pragma once

#include "store/log/log_store.hpp"
#include "store/log/meta.hpp"
#include "store/store_file.hpp"

#include <expected>
#include <string>

namespace idem::segments {

/// Among which folders a store's records are spread. The first one is the store's own folder, and
/// has this.
struct Layout {
  std::uint32_t shards = 1;  ///< A record belongs to embedded::shard_of(id, shards).
  std::uint32_t folders =
      1;                   ///< All that may have records; a store without one of them is damaged.
  bool is_moving = false;  ///< Records may be in another folder than theirs.
  bool operator==(const Layout&) const = default;
};

/// A store without this value has one shard. The error is a sentence.
std::expected<Layout, std::string> read_layout(Meta& meta);
void write_layout(Meta& meta, const Layout& layout);

/// Each start marks all shards anew, so that one that was exchanged for a copy from before is
/// noticed. A store that never had several shards has none: zero.
struct StartMark {
  std::uint64_t present = 0;
  /// In the first shard: what a start that is cut off leaves in some of the others.
  std::uint64_t next = 0;

  static std::uint64_t random();
  /// Whether this is another shard's where the first one has `first`.
  bool fits(const StartMark& first) const noexcept {
    return present == first.present || present == first.next;
  }
};
std::expected<StartMark, std::string> read_start_mark(Meta& meta);
void write_start_mark(Meta& meta, const StartMark& mark);

/// Of the first shard the store's path.
std::string folder_of_shard(const std::string& store, std::uint32_t shard);

/// In each folder but the first: of which shard it is.
inline constexpr std::string_view meta_shard = "shard";

/// What each of `shards` may use.
LogSizes sizes_of_one(LogSizes all, std::uint32_t shards);

/// Of work on one shard after the other: the part of all.
StoreFileProgress part_of(const StoreFileProgress& progress, std::uint32_t shard,
                          std::uint32_t shards);

/// For a folder that is not the first: "is shard 2 of a store, ..."
std::string is_a_shard(std::uint64_t shard);
std::string lacks_shard(std::uint32_t shard);
std::string has_other_shard(std::uint32_t shard);
std::string is_of_another_start(std::uint32_t shard);
std::string has_unknown_shard(std::uint32_t shard);

}  // namespace idem::segments
