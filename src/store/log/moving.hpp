#pragma once

#include "store/log/open_store.hpp"

#include <expected>
#include <functional>
#include <span>
#include <string>

namespace idem::segments {

/// About how many bytes of records move_records() writes. An error, a sentence, if one cannot be
/// read: it could not be moved, and its key would run again. Changes nothing.
std::expected<std::uint64_t, std::string> bytes_to_move(std::span<OpenedShard> shards,
                                                        std::uint32_t count);

/// Brings every record, and every line of evidence, to its shard of the first `count`; the others
/// are empty then. Nobody else has the shards. A start that is cut off in between leaves a record
/// in both shards, or in one of them, and a repetition goes on from there. The error is a sentence.
std::expected<void, std::string> move_records(
    std::span<OpenedShard> shards, std::uint32_t count,
    const std::function<void(std::uint64_t moved)>& progress);

}  // namespace idem::segments
