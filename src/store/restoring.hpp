#pragma once

#include "store/store_file.hpp"

#include <expected>
#include <optional>
#include <string>

/// What every kind of embedded store needs to make a backup, and a store of one.
namespace idem {

/// A name beside `path` that no file has.
std::string name_beside(const std::string& path, const char* suffix);
/// Where the store at `path` goes that another one replaces. A restore that was killed may have
/// left names of the same second.
std::string name_for_old(const std::string& path);

/// A backup with findings is not restored, unless that was ordered.
std::optional<StoreFileError> why_not_restored(const RestoreOrder& order,
                                               const StoreFileReport& backup);
/// Writes down, in the store that a restore has made of `backup` and that has no name yet, what it
/// means (core/record/restore_note.hpp). The error is a sentence.
std::expected<void, std::string> note_restore(Store& store, const StoreFileReport& backup);
StoreFileError store_is_there(const std::string& path);
/// An errno of its lock: a process has the store (EWOULDBLOCK), or nobody can know.
std::unexpected<StoreFileError> not_locked(const std::string& path, int error);

/// Root makes a file or a directory for the user of the gateway: that of what is at `path`, or of
/// its folder.
std::expected<void, StoreFileError> give_to_owner(const std::string& made, const std::string& path);

}  // namespace idem
