#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Tells what keeps a process from a file from damage in it: a right, a mount, a limit or a lock.
/// An operator who takes one for the other brings back a copy, and the keys that came after it run
/// again.
namespace idem {

/// Of an errno: no byte of the file is in doubt.
bool is_about_access(int error) noexcept;

/// "Permission denied; WHAT TO DO", with the command that repairs it where there is one. `store`:
/// the path of the store that has the file; its folder tells whose it is to be.
std::string words_on(int error, const std::string& path, const std::string& store);

/// "PATH: cannot be created: Permission denied; WHAT TO DO". `doing`: "cannot be created".
std::string file_failure(const std::string& path, std::string_view doing, int error);
/// "STORE: PART cannot be read: Permission denied; WHAT TO DO"
std::string part_failure(const std::string& store, const std::string& part, std::string_view doing,
                         int error);

/// The errno whose words a library's text ends with, as RocksDB's do. 0: with no such words.
int error_at_the_end_of(std::string_view text);

/// `text`, and what to do about the system's words that it ends with, about `path`.
std::string with_advice(const std::string& text, const std::string& path);

/// Why a file that a setting names has no first line. `error`: the errno of opening it; 0: none.
std::string why_no_line(const std::string& path, int error);

enum class FileUse : std::uint8_t { reading, writing };

/// A file or a folder of a store.
struct FilePart {
  std::string path;
  bool with_content = true;  ///< Of a folder: all that is in it, too.
};

/// The first of `parts` that this process may not use so, as a sentence that begins with `store`,
/// and says how many there are. What is missing counts as usable. Opens none of them: that would
/// drop locks that the process has on them. None: all can be used.
std::optional<std::string> why_no_access(const std::string& store, std::span<const FilePart> parts,
                                         FileUse use);

/// How a look that speaks for a start has to be able to use the files of a store: if the store or
/// its folder belongs to the user of this process, to write them, else to read them.
FileUse use_of_start(const std::string& store);

/// Of a process of root: whose the directory of a store is, where files that root makes would keep
/// that user out of it. None: it is not, or there is none.
std::optional<std::string> why_not_as_root(const std::string& store);

/// "is a link to TARGET, where nothing is; ...": a path that a new store must not be made at. None:
/// it is no link, or leads to something.
std::optional<std::string> why_dangling(const std::string& path);

/// Why no file in `folder` can be locked: its file system has no locks for this process. None: one
/// can be. Makes a file without a name there, or one that it deletes.
std::optional<std::string> why_no_locks(const std::string& folder);

}  // namespace idem
