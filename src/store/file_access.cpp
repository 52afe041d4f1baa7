#include "store/file_access.hpp"

#include "store/folder.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace idem {
namespace {

namespace fs = std::filesystem;

/// Looked up at an error only: the names may come over the network.
constexpr std::size_t account_bytes_max = 16'384;
/// The root of a file system of ext4 has it, and only root may look into it.
constexpr const char* found_folder = "lost+found";
/// RocksDB writes its own log anew at each start, under a name that it makes free first.
constexpr std::string_view index_log = "LOG";
constexpr std::size_t parts_depth_max = 4;

constexpr std::array errors_of_access{EACCES, EPERM,  EROFS,      ENOLCK, EMFILE,
                                      ENFILE, ENOSYS, EOPNOTSUPP, ELOOP,  ESTALE};

std::string user_named(uid_t id) {
  std::vector<char> bytes(account_bytes_max);
  passwd entry{};
  passwd* found = nullptr;
  const bool is_known =
      ::getpwuid_r(id, &entry, bytes.data(), bytes.size(), &found) == 0 && found != nullptr;
  return is_known ? std::string(entry.pw_name) : std::to_string(id);
}

std::string group_named(gid_t id) {
  std::vector<char> bytes(account_bytes_max);
  group entry{};
  group* found = nullptr;
  const bool is_known =
      ::getgrgid_r(id, &entry, bytes.data(), bytes.size(), &found) == 0 && found != nullptr;
  return is_known ? std::string(entry.gr_name) : std::to_string(id);
}

std::string account_of(uid_t user, gid_t group) {
  return user_named(user) + ':' + group_named(group);
}

/// As a shell reads it.
std::string shell_word(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("/._-+:@%,=", c) != nullptr || c >= 0x80;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string folder_above(const std::string& path) {
  const std::string above = fs::path(path).parent_path().string();
  return above.empty() ? "." : above;
}

/// `path`, or the nearest folder above it, that is there and may be looked at.
std::string what_is_there(std::string path, struct stat& found) {
  while (::stat(path.c_str(), &found) != 0 && path != "/" && path != ".") {
    path = folder_above(path);
  }
  return path;
}

bool modes_allow(const struct stat& found) {
  const bool is_folder = S_ISDIR(found.st_mode);
  const unsigned wanted = is_folder ? 07 : 06;
  unsigned has = found.st_mode & 07U;
  if (found.st_uid == ::geteuid()) {
    has = found.st_mode >> 6U & 07U;
  } else {
    std::array<gid_t, 64> groups{};
    const int count = std::max(::getgroups(groups.size(), groups.data()), 0);
    const std::span mine(groups.data(), static_cast<std::size_t>(count));
    const bool is_of_group =
        found.st_gid == ::getegid() || std::ranges::find(mine, found.st_gid) != mine.end();
    if (is_of_group) has = found.st_mode >> 3U & 07U;
  }
  return (has & wanted) == wanted;
}

/// Whose the store is to be, by the folders that hold it: none if all of them are root's.
std::optional<uid_t> keeper_of(const std::string& path, const std::string& store) {
  std::optional<uid_t> keeper;
  for (const std::string& folder : {folder_above(store), store, folder_above(path)}) {
    struct stat found{};
    if (::stat(folder.c_str(), &found) != 0) continue;
    if (found.st_uid == ::geteuid()) return found.st_uid;
    if (!keeper && found.st_uid != 0) keeper = found.st_uid;
  }
  return keeper;
}

std::string give_command(const std::string& account, const std::string& path,
                         const std::string& store) {
  struct stat found{};
  const bool is_folder = ::stat(store.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
  const bool is_below = path.starts_with(store + "/") || path == store;
  std::error_code code;
  const std::string& named = is_folder && is_below ? store : path;
  const fs::path real = fs::canonical(named, code);
  std::string words = shell_word(code ? named : real.string());
  // SQLite's log lies beside the file, and mostly has the same owner.
  const std::string log = real.string() + "-wal";
  if (!code && !is_folder && path == store && ::stat(log.c_str(), &found) == 0)
    words += ' ' + shell_word(log);
  return "chown " + std::string(is_folder && is_below ? "-R " : "") + account + ' ' + words;
}

std::string mode_text(const struct stat& found) {
  std::array<char, 8> text{};
  (void)std::snprintf(text.data(), text.size(), "%04o", found.st_mode & 07777U);
  return text.data();
}

std::string advice_on_right(int error, const std::string& path, const std::string& store) {
  struct stat found{};
  const std::string place = what_is_there(path, found);
  const std::string word = shell_word(place);
  const std::string me = account_of(::geteuid(), ::getegid());
  // An attribute forbids a thing to all (EPERM); root may lack the right to pass over a mode.
  if (error == EPERM || modes_allow(found)) {
    return "its owner and mode allow it to " + me +
           ", so something else forbids it: a security module (dmesg; ls -Z " + word +
           "), an attribute (lsattr -d " + word + "), or a server of files that has other users";
  }
  if (found.st_uid == ::geteuid()) {
    return "its mode is " + mode_text(found) + ": chmod " +
           (S_ISDIR(found.st_mode) ? "u+rwx " : "u+rw ") + word;
  }
  const std::string belongs = (place == path ? "it" : place) + " belongs to " +
                              account_of(found.st_uid, found.st_gid) + " (mode " +
                              mode_text(found) + "), and this process is " + me;
  const auto keeper = keeper_of(place, store);
  const bool is_mine = keeper == ::geteuid();
  const bool is_above = store.starts_with(place == "/" ? place : place + "/");
  const std::string user = keeper && !is_mine ? user_named(*keeper) : "the user of the gateway";
  if (is_above && (is_mine || !keeper)) {
    return belongs + ": run this as the user of the gateway; only if that is " +
           user_named(::geteuid()) + ", use a folder of that user instead, or give it this one: " +
           give_command(me, place, store);
  }
  if (is_mine) return belongs + ": " + give_command(me, place, store);
  const std::string only = "; only if " + user_named(::geteuid()) +
                           " is the user of the gateway: " + give_command(me, place, store);
  if (!keeper || found.st_uid == *keeper) return belongs + ": run this as " + user + only;
  return belongs + ", while the store is " + user + "'s: run this as " + user + ", after " +
         give_command(user + ':', place, store);
}

std::string mount_point_of(const std::string& path) {
  struct stat found{};
  std::string at = what_is_there(path, found);
  const auto device = found.st_dev;
  for (;;) {
    if (at == "/" || at == ".") return at;
    const std::string above = folder_above(at);
    if (::stat(above.c_str(), &found) != 0 || found.st_dev != device) return at;
    at = above;
  }
}

constexpr const char* on_locks =
    "its file system has no locks for this process, and without them a second process could use "
    "the store, too: use a disk of this machine, or on NFS run the lock services (rpc.statd) and "
    "mount it without nolock";

/// Empty: the system's own words say it.
std::string advice_on(int error, const std::string& path, const std::string& store);

class Looking {
 public:
  explicit Looking(FileUse use) : use_(use) {}

  void look_at(const std::string& path, std::size_t depths) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return note(path, errno);
    const bool is_folder = S_ISDIR(found.st_mode);
    const int wanted = R_OK | (use_ == FileUse::writing ? W_OK : 0) | (is_folder ? X_OK : 0);
    if (::faccessat(AT_FDCWD, path.c_str(), wanted, AT_EACCESS) != 0) return note(path, errno);
    if (!is_folder || depths == 0) return;
    std::error_code code;
    for (const std::string& name : names_in(path, code)) {
      const bool counts = name != found_folder && !name.starts_with(index_log);
      if (counts) look_at(path + "/" + name, depths - 1);
    }
  }

  std::size_t count() const noexcept { return count_; }
  const std::string& first() const noexcept { return first_; }
  int error() const noexcept { return error_; }

 private:
  // What its process deletes meanwhile is missing.
  void note(const std::string& path, int error) {
    if (!is_about_access(error)) return;
    if (count_++ > 0) return;
    first_ = path;
    error_ = error;
  }

  FileUse use_;
  std::size_t count_ = 0;
  std::string first_;
  int error_ = 0;
};

/// As the stores take their locks: of a whole file, and of bytes.
int try_locks(int file) {
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return errno;
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return ::fcntl(file, F_SETLK, &range) == 0 ? 0 : errno;
}

std::string advice_on(int error, const std::string& path, const std::string& store) {
  switch (error) {
    case EACCES:
    case EPERM:
      return advice_on_right(error, path, store);
    case EROFS:
      return "its file system is mounted for reading only: the kernel's log says whether it did "
             "that itself because the disk failed (dmesg); if not, mount -o remount,rw " +
             shell_word(mount_point_of(path)) + " (of a service: ReadWritePaths= in its unit)";
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP:
      return on_locks;
    case EMFILE:
      return "this process has as many open files as it may have: raise its limit "
             "(LimitNOFILE= in the unit of a service, ulimit -n)";
    case ENFILE:
      return "this machine has as many open files as it may have: raise fs.file-max (sysctl)";
    case ENOSPC:
      return "make room on its disk: df -h " + shell_word(mount_point_of(path)) + " and df -i";
    case EDQUOT:
      return "the quota of " + user_named(::geteuid()) + " on its disk is used up: raise it";
    case EIO:
      return "the disk failed: look into the kernel's log (dmesg) before anything else";
    case ESTALE:
      return "its server of files no longer knows it: mount it again";
    case ELOOP:
      return "its links lead in a circle: correct the link";
    case ENOENT:
      return why_dangling(path).value_or("");
    default:
      return {};
  }
}

}  // namespace

bool is_about_access(int error) noexcept {
  return std::ranges::find(errors_of_access, error) != errors_of_access.end();
}

std::string words_on(int error, const std::string& path, const std::string& store) {
  const std::string todo = advice_on(error, path, store);
  return std::strerror(error) + (todo.empty() ? todo : "; " + todo);
}

std::string file_failure(const std::string& path, std::string_view doing, int error) {
  return path + ": " + std::string(doing) + ": " + words_on(error, path, path);
}

std::string part_failure(const std::string& store, const std::string& part, std::string_view doing,
                         int error) {
  return store + ": " + part + ' ' + std::string(doing) + ": " + words_on(error, part, store);
}

std::string with_advice(const std::string& text, const std::string& path) {
  const int error = error_at_the_end_of(text);
  const std::string todo = error == 0 ? std::string() : advice_on(error, path, path);
  return todo.empty() ? text : text + "; " + todo;
}

std::string why_no_line(const std::string& path, int error) {
  if (error == 0) return "the file " + path + " is empty";
  return "cannot read the file " + path + ": " + words_on(error, path, path);
}

int error_at_the_end_of(std::string_view text) {
  constexpr std::array others{ENOSPC, EDQUOT, EIO, ENOENT, EAGAIN};
  for (const std::span<const int> errors :
       {std::span<const int>(errors_of_access), std::span<const int>(others)}) {
    for (const int error : errors) {
      if (text.ends_with(std::strerror(error))) return error;
    }
  }
  return 0;
}

std::optional<std::string> why_no_access(const std::string& store, std::span<const FilePart> parts,
                                         FileUse use) {
  const int any = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (any < 0 && is_about_access(errno)) return file_failure(store, "cannot be opened", errno);
  if (any >= 0) ::close(any);
  Looking looking(use);
  for (const FilePart& part : parts) {
    looking.look_at(part.path, part.with_content ? parts_depth_max : 0);
  }
  if (looking.count() == 0) return std::nullopt;
  // The command comes last, so that it can be copied to the end of the line.
  std::string doing = use == FileUse::reading ? "cannot be read" : "cannot be read and written";
  if (looking.count() > 1) doing += " (and " + std::to_string(looking.count() - 1) + " more)";
  return store +
         ": that is no damage, so bring back no copy, which knows fewer keys: " + looking.first() +
         ' ' + doing + ": " + words_on(looking.error(), looking.first(), store);
}

FileUse use_of_start(const std::string& store) {
  const auto is_mine = [](const std::string& path) {
    struct stat found{};
    return ::stat(path.c_str(), &found) == 0 && found.st_uid == ::geteuid();
  };
  return is_mine(store) || is_mine(folder_above(store)) ? FileUse::writing : FileUse::reading;
}

std::optional<std::string> why_not_as_root(const std::string& store) {
  struct stat found{};
  if (::geteuid() != 0 || ::stat(store.c_str(), &found) != 0) return std::nullopt;
  if (!S_ISDIR(found.st_mode) || found.st_uid == 0) return std::nullopt;
  const std::string user = user_named(found.st_uid);
  return store + " belongs to " + user + ", and this process is root: " + user +
         " will not be able to use the files that it makes there. Run this as " + user +
         "; before that user starts again: " +
         give_command(account_of(found.st_uid, found.st_gid), store, store);
}

std::optional<std::string> why_dangling(const std::string& path) {
  std::error_code code;
  const fs::path target = fs::read_symlink(path, code);
  if (code || fs::exists(path, code) || code) return std::nullopt;
  return "is a link to " + target.string() +
         ", where nothing is: mount the disk that has it, or correct the link";
}

std::optional<std::string> why_no_locks(const std::string& folder) {
  int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {
    std::string name = folder + "/.idem-lock-" + std::string(6, 'X');  // As mkostemp wants it.
    file = ::mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) return std::nullopt;
    ::unlink(name.c_str());
  }
  const int error = try_locks(file);
  ::close(file);
  if (error == 0) return std::nullopt;
  return std::string("cannot be locked: ") + std::strerror(error) + "; " + on_locks;
}

}  // namespace idem
